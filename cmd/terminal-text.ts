/**
 * What others have written, for a terminal: a pod's fields and a token's description are their authors', and a terminal does what it is told, as to show other lines than those it was given.
 * Of what moves it, only ends of lines and tabs remain; the rest is shown as kubectl shows it.
 *
 * Source: kubernetes v1.36 cli-runtime/pkg/printers/terminal.go WriteEscaped
 */
export function terminalText(text: string): string {
  return text.replace(CONTROL, (one) => (one === "\r" ? "\\r" : one < " " ? `^${String.fromCharCode(one.charCodeAt(0) + 64)}` : `\\x${one.charCodeAt(0).toString(16)}`));
}

const CONTROL = /[\0-\x08\x0b-\x1f\x7f-\x9f]/g;
