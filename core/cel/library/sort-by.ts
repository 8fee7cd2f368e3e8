/** list.sortBy(x, key): sorts a list by what each element becomes. Source: cel-go ext/lists.go */
import { MacroError, STANDARD_MACROS, type Macro } from "../syntax/macros.ts";

const INPUT = "@__sortBy_input__";
const SORTABLE = ["list", "select", "ident", "comprehension", "call"];

export const SORT_BY_MACRO: Macro = {
  name: "sortBy", args: 2, method: true,
  expand(make, target, args) {
    if (!SORTABLE.includes(target!.kind)) throw new MacroError(target!, "sortBy can only be applied to a list, identifier, comprehension, call or select expression");
    const map = STANDARD_MACROS.find((macro) => macro.name === "map" && macro.args === 2)!;
    const keys = map.expand(make, make.ident(INPUT), args)!;
    return make.comprehension({
      range: make.list(), iterVar: "#unused", accuVar: INPUT, init: target!, condition: make.literal(false), step: make.ident(INPUT),
      result: make.method("@sortByAssociatedKeys", make.ident(INPUT), keys),
    });
  },
};
