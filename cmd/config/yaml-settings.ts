/** YAML that somebody has written for us: what is wrong is told by line and column, without the text that stands there, which may be a token and would be in a log then. */
import { parse, type ParseOptions, type DocumentOptions, type SchemaOptions } from "yaml";

/** Throws Error. */
export function readYamlSettings(text: string, options: ParseOptions & DocumentOptions & SchemaOptions = {}): unknown {
  try {
    return parse(text, options);
  } catch (error) {
    throw new Error((error as Error).message.split("\n", 1)[0]!.replace(/:$/, "")); // no cause: that would say it all
  }
}
