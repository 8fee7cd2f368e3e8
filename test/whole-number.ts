/** Of a command line. Throws for what is none: a run of "1O" seeds would be over at once, with nothing wrong. */
export function wholeNumber(text: string, what: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new Error(`${what}: ${text} is not a whole number`);
  return Number(text);
}
