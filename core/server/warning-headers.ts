/**
 * Warnings as headers: no more than clients can be expected to take.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/filters/warning.go, apimachinery/pkg/util/net/http.go NewWarningHeader
 */
import { headerField } from "../api/request/header-text.ts";

const RUNES_MAX = 4 * 1024;
const RUNES_EACH_MAX = 256;

/** Values of Warning, to be sent in UTF-8. Those with control characters cannot be told, and are not. Once they are too many each is cut short, and then the rest left out. */
export function warningHeaders(texts: readonly string[]): string[] {
  const told = [...new Set(texts)].filter((text) => text !== "" && !/\p{Cc}/u.test(text) && text.isWellFormed());
  const total = told.reduce((sum, text) => sum + [...text].length, 0);
  return (total <= RUNES_MAX ? told : cut(told)).map((text) => headerField(`299 - "${text.replace(/["\\]/g, "\\$&")}"`));
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
