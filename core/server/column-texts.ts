/**
 * What the columns of Tables are described with: the documentation of API fields. Few of the texts there are, so these are kept, and none before a Table is asked for.
 *
 *   const describe = await columnTexts(load)();      describe("api.core.v1.PodStatus.podIP")
 */
import type { Descriptions } from "../api/openapi/schema.ts";
import { documentedFields } from "../api/codec/table/printers.ts";
import type { Presentation } from "./respond.ts";

/** Upstream's columns have the text of the type's own documentation, to which OpenAPI adds the values. */
const ENUM_VALUES = /\n+Possible enum values:[\s\S]*$/;

/** The columns of bindings have the text of v1beta1. */
const SINCE_V1 = / This field is immutable\.$/;

export type ColumnTexts = () => Promise<Presentation["describe"]>;

export function columnTexts(load: () => Promise<Descriptions>): ColumnTexts {
  let known: Promise<Presentation["describe"]> | undefined;
  return () => {
    if (known) return known;
    known = load().then((descriptions) => {
      const texts = new Map<string, string>();
      for (const field of documentedFields()) {
        const end = field.lastIndexOf(".");
        const text = descriptions[`io.k8s.${field.slice(0, end)}`]?.[field.slice(end + 1)];
        if (text !== undefined) texts.set(field, text.replace(ENUM_VALUES, "").replace(field.startsWith("api.rbac.") ? SINCE_V1 : "", ""));
      }
      return (field) => texts.get(field);
    });
    known.catch(() => (known = undefined)); // the caller has the error; the next one may try again
    return known;
  };
}
