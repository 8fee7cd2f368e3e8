/** Time zones by their IANA names. The runtime brings its own database. Source: kubernetes v1.36 pkg/apis/batch/validation/validation.go validateTimeZone */

/** "" is UTC, as Go reads it. */
export function isTimeZone(name: string): boolean {
  if (name === "" || name === "UTC" || name === "Local") return true;
  try {
    const { timeZone } = new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions();
    const spelledOtherwise = timeZone !== name && timeZone.toLowerCase() === name.toLowerCase(); // Go looks for a file of that name
    return !spelledOtherwise && !/^[+-]/.test(name);
  } catch {
    return false; // a RangeError: there is no such zone
  }
}

const PART = /^[A-Za-z.\-_0-9+]{1,14}$/;

export function* timeZoneProblems(name: string): Iterable<string> {
  if (name === "") { yield "timeZone must be nil or non-empty string"; return; }
  for (const part of name.split("/"))
    if (part === "." || part === ".." || part.startsWith("-") || !PART.test(part)) { yield `unknown time zone ${name}`; return; }
  if (name.toLowerCase() === "local") yield "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
  if (name.includes("..")) yield "time: invalid location name"; // could lead out of the database's directory
  else if (!isTimeZone(name)) yield `unknown time zone ${name}`;
}
