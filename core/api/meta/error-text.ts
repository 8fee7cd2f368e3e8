/** What is said of whatever was thrown; of an error without words its code, or else its name. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || (error as NodeJS.ErrnoException).code || error.name;
}
