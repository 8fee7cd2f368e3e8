/**
 * The language as Kubernetes speaks it: the libraries of each version, and what an expression may cost.
 *
 * Source: kubernetes v1.36 apiserver/pkg/cel/environment/base.go, apiserver/pkg/apis/cel/config.go
 */
import { Environment, type Library } from "./check/declarations.ts";
import { formatLibrary } from "./library/format.ts";
import { ipLibrary } from "./library/ip.ts";
import { listsLibrary, moreListsLibrary, setsLibrary } from "./library/lists.ts";
import { optionalsLibrary } from "./library/optionals.ts";
import { quantityLibrary } from "./library/quantity.ts";
import { regexLibrary } from "./library/regex-library.ts";
import { semverLibrary } from "./library/semver.ts";
import { standardLibrary } from "./library/standard.ts";
import { stringsLibrary } from "./library/strings.ts";
import { authzLibrary } from "./library/authz.ts";
import { twoVariablesLibrary } from "./library/two-variables.ts";
import { urlLibrary } from "./library/url.ts";

/** Of one evaluation of one expression. */
export const CALL_COST_LIMIT = 1_000_000;
/** Of all rules over one object. */
export const RUNTIME_COST_BUDGET = 10_000_000;
/** Of all match conditions over one request. */
export const MATCH_CONDITIONS_COST_BUDGET = 2_500_000;
export const REQUEST_BYTES_MAX = 3 * 1024 * 1024;

const KUBERNETES_LIBRARIES: readonly Library[] = [
  standardLibrary, urlLibrary, regexLibrary, listsLibrary, authzLibrary, optionalsLibrary, quantityLibrary, stringsLibrary, setsLibrary, ipLibrary, formatLibrary, twoVariablesLibrary, semverLibrary, moreListsLibrary,
];

export function kubernetesEnvironment(): Environment { return new Environment(KUBERNETES_LIBRARIES); }
