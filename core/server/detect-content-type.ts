/**
 * What Go says a body is whose server did not say: as browsers guess, from its first bytes.
 *
 * Source: Go net/http/sniff.go (DetectContentType); https://mimesniff.spec.whatwg.org
 */
const LOOKED_AT = 512;
const HTML = /^[\t\n\f\r ]*<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|!--)[ >]/i;
const XML = /^[\t\n\f\r ]*<\?xml/;
const SIGNATURES: readonly (readonly [RegExp, string])[] = [
  [HTML, "text/html; charset=utf-8"], [XML, "text/xml; charset=utf-8"], [/^%PDF-/, "application/pdf"], [/^%!PS-Adobe-/, "application/postscript"],
  [/^\xfe\xff/, "text/plain; charset=utf-16be"], [/^\xff\xfe/, "text/plain; charset=utf-16le"], [/^\xef\xbb\xbf/, "text/plain; charset=utf-8"],
  [/^\0\0\x01\0/, "image/x-icon"], [/^\0\0\x02\0/, "image/x-icon"], [/^BM/, "image/bmp"], [/^GIF8[79]a/, "image/gif"], [/^RIFF.{4}WEBPVP/s, "image/webp"],
  [/^\x89PNG\r\n\x1a\n/, "image/png"], [/^\xff\xd8\xff/, "image/jpeg"], [/^FORM.{4}AIFF/s, "audio/aiff"], [/^ID3/, "audio/mpeg"], [/^OggS\0/, "application/ogg"],
  [/^MThd\0\0\0\x06/, "audio/midi"], [/^RIFF.{4}AVI /s, "video/avi"], [/^RIFF.{4}WAVE/s, "audio/wave"], [/^.{4}ftypmp4/s, "video/mp4"], [/^\x1a\x45\xdf\xa3/, "video/webm"],
  [/^.{34}LP/s, "application/vnd.ms-fontobject"], [/^\0\x01\0\0/, "font/ttf"], [/^OTTO/, "font/otf"], [/^ttcf/, "font/collection"], [/^wOFF/, "font/woff"], [/^wOF2/, "font/woff2"],
  [/^\x1f\x8b\x08/, "application/x-gzip"], [/^PK\x03\x04/, "application/zip"], [/^Rar!\x1a\x07\0/, "application/x-rar-compressed"], [/^Rar!\x1a\x07\x01\0/, "application/x-rar-compressed"],
  [/^\0asm/, "application/wasm"],
];
/** What no text has. */
const BINARY = /[\0-\x08\x0b\x0e-\x1a\x1c-\x1f]/;

export function detectContentType(bytes: Buffer): string {
  const text = bytes.toString("latin1", 0, LOOKED_AT);
  const found = SIGNATURES.find(([signature]) => signature.test(text));
  return found?.[1] ?? (BINARY.test(text.replace(/^[\t\n\f\r ]+/, "")) ? "application/octet-stream" : "text/plain; charset=utf-8");
}
