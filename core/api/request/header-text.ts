/**
 * Text in the fields of HTTP's headers. They are bytes, which Node and the parts of ours that read and write them have as a character each; what people are called is UTF-8 in them, as Go's clients and servers have it.
 */

/** What the bytes of a field say. What is no UTF-8 is shown by replacement characters. */
export function headerText(field: string): string { return /[\x80-\xff]/.test(field) ? Buffer.from(field, "latin1").toString() : field; }

/** The bytes of a field that says `text`. */
export function headerField(text: string): string { return /[^\0-\x7f]/.test(text) ? Buffer.from(text).toString("latin1") : text; }
