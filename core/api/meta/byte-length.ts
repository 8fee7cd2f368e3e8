/** Length in UTF-8 bytes, as the API counts every limit on a string. No slower than a comparison for short ASCII. */
export function byteLength(text: string): number { return Buffer.byteLength(text, "utf8"); }
