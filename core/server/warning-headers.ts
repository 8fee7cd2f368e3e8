/**
 * Warnings as headers: no more than clients can be expected to take.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/filters/warning.go, apimachinery/pkg/util/net/http.go NewWarningHeader
 */
const RUNES_MAX = 4 * 1024;
const RUNES_EACH_MAX = 256;

/**
 * Values of Warning, to be sent in UTF-8. Those with control characters cannot be told, and are not. Once they are too many each is cut short, and then the rest left out.
 *
 * Over HTTP/2 a header's characters are its bytes; over HTTP/1.1 Bun encodes them itself, and takes none beyond U+00FF.
 */
export function warningHeaders(texts: readonly string[], httpVersion: 1 | 2): string[] {
  const told = [...new Set(texts)].filter((text) => text !== "" && !/\p{Cc}/u.test(text) && text.isWellFormed());
  const total = told.reduce((sum, text) => sum + [...text].length, 0);
  return (total <= RUNES_MAX ? told : cut(told)).map((text) => `299 - "${text.replace(/["\\]/g, "\\$&")}"`).map((value) => (httpVersion === 2 ? Buffer.from(value).toString("latin1") : value.replace(/[^\0-\xff]/gu, "?")));
}

function cut(texts: readonly string[]): string[] {
  const cuts: string[] = [];
  let [all, written] = [0, 0];
  for (const text of texts) {
    if (all > RUNES_MAX && written >= RUNES_MAX) break; // what came before it was too much is told in any case
    const runes = [...text];
    all += runes.length;
    const short = runes.slice(0, RUNES_EACH_MAX);
    written += short.length;
    cuts.push(short.join(""));
  }
  return cuts;
}
