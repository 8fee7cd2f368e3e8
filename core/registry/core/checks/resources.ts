/**
 * Names and amounts of resources: which names there are, for whom, and what amounts they take.
 *
 * Source: kubernetes v1.36 pkg/apis/core/helper/helpers.go, pkg/apis/core/validation/validation.go
 */
import { type FieldError, invalid, key, notSupported } from "../../../api/meta/field-error.ts";
import { qualifiedName } from "../../../api/meta/names.ts";
import { addQuantity, compareQuantity, maxQuantity, parseQuantity, roundedToMilli, type Quantity } from "../../../api/meta/quantity.ts";
import { isExtendedResource, isNativeResource } from "../../../api/meta/resource-names.ts";
import { NOT_NEGATIVE, NOT_POSITIVE, problems } from "./values.ts";

export type ResourceList = Readonly<Record<string, string>>;

const HUGEPAGES = "hugepages-";
const REQUESTS_HUGEPAGES = "requests.hugepages-";

const COMPUTE = ["cpu", "memory", "ephemeral-storage"];
const COUNTS = [
  "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
];
const QUOTA: ReadonlySet<string> = new Set([...COMPUTE, ...COMPUTE.map((name) => `requests.${name}`), ...COMPUTE.map((name) => `limits.${name}`), "requests.storage", ...COUNTS]);
const STANDARD: ReadonlySet<string> = new Set([...QUOTA, "storage"]);

export function isHugePage(name: string): boolean { return name.startsWith(HUGEPAGES); }
function isQuotaHugePage(name: string): boolean { return isHugePage(name) || name.startsWith(REQUESTS_HUGEPAGES); }
/** May be promised more often than it is there. */
export function isOvercommitAllowed(name: string): boolean { return isNativeResource(name) && !isHugePage(name); }
export function isStandardQuotaResource(name: string): boolean { return QUOTA.has(name) || isQuotaHugePage(name); }
function isIntegerResource(name: string): boolean { return COUNTS.includes(name) || isExtendedResource(name); }
export function isPodLevelResource(name: string): boolean { return name === "cpu" || name === "memory" || isHugePage(name); }

export function* resourceName(path: string, name: string): Iterable<FieldError> {
  const wrong = qualifiedName(name);
  if (wrong.length > 0) yield* problems(path, name, wrong);
  else if (!name.includes("/") && !STANDARD.has(name) && !isQuotaHugePage(name)) yield invalid(path, name, "must be a standard resource type or fully qualified");
}

export function* containerResourceName(path: string, name: string): Iterable<FieldError> {
  yield* resourceName(path, name);
  if (!name.includes("/")) {
    if (!COMPUTE.includes(name) && !isHugePage(name)) yield invalid(path, name, "must be a standard resource for containers");
  } else if (!isNativeResource(name) && !isExtendedResource(name)) yield invalid(path, name, "doesn't follow extended resource name standard");
}

export function* podResourceName(path: string, name: string): Iterable<FieldError> {
  const errors = [...resourceName(path, name)];
  yield* errors;
  if (errors.length === 0 && !isPodLevelResource(name)) yield notSupported(path, name, ["cpu", HUGEPAGES, "memory"]);
}

export function* quotaResourceName(path: string, name: string): Iterable<FieldError> {
  yield* resourceName(path, name);
  if (!name.includes("/") && !isStandardQuotaResource(name)) yield invalid(path, name, "must be a standard resource for quota");
}

export function* resourceQuantity(path: string, name: string, value: string): Iterable<FieldError> {
  const quantity = parseQuantity(value);
  if (quantity.sign < 0) yield invalid(path, value, NOT_NEGATIVE);
  if (isIntegerResource(name) && !quantity.isWhole) yield invalid(path, value, "must be an integer");
}

export function* positiveQuantity(path: string, value: string): Iterable<FieldError> {
  if (parseQuantity(value).sign <= 0) yield invalid(path, value, NOT_POSITIVE);
}

/** A value a volume can have. */
export function* volumeQuantity(path: string, value: string): Iterable<FieldError> {
  const whole = parseQuantity(value).value();
  if (whole < 0n) yield invalid(path, whole, "must be a valid resource quantity");
}

/** Whether an amount of huge pages is a whole number of them. */
export function isDivisibleHugePage(name: string, value: string): boolean {
  try {
    const page = parseQuantity(name.slice(HUGEPAGES.length));
    return page.sign > 0 && page.isWhole && parseQuantity(value).value() % page.value() === 0n;
  } catch {
    return false; // no page has that size
  }
}

/** Both lists of a quota's status or spec, or of a LimitRange: names and amounts. */
export function* resourceAmounts(path: string, list: ResourceList | undefined, checkName: (path: string, name: string) => Iterable<FieldError>): Iterable<FieldError> {
  for (const [name, value] of Object.entries(list ?? {})) {
    yield* checkName(key(path, name), name);
    yield* resourceQuantity(key(path, name), name, value);
  }
}

/** No finer than a thousandth: values are stored rounded up. Mutates. */
export function roundResourceList(list: Record<string, string> | undefined): void {
  for (const name in list) {
    const amount = list[name]!;
    const rounded = roundedToMilli(amount);
    if (rounded !== amount) list[name] = rounded;
  }
}

/** Sums and maxima of lists, as quantities. */
export class ResourceSum {
  readonly #amounts = new Map<string, Quantity>();

  add(list: ResourceList | undefined): this {
    for (const [name, value] of Object.entries(list ?? {})) this.#merge(name, parseQuantity(value), addQuantity);
    return this;
  }
  addAll(other: ResourceSum): this {
    for (const [name, amount] of other.#amounts) this.#merge(name, amount, addQuantity);
    return this;
  }
  max(other: ResourceSum): this {
    for (const [name, amount] of other.#amounts) this.#merge(name, amount, maxQuantity);
    return this;
  }
  #merge(name: string, amount: Quantity, how: (a: Quantity, b: Quantity) => Quantity): void {
    const before = this.#amounts.get(name);
    this.#amounts.set(name, before ? how(before, amount) : amount);
  }

  get(name: string): Quantity | undefined { return this.#amounts.get(name); }
  entries(): Iterable<[string, Quantity]> { return this.#amounts.entries(); }
  get size(): number { return this.#amounts.size; }

  /** The same names with the same amounts. */
  equals(other: ResourceSum): boolean {
    return this.size === other.size && [...this.#amounts].every(([name, amount]) => {
      const there = other.get(name);
      return there !== undefined && compareQuantity(amount, there) === 0;
    });
  }
}
