/**
 * Devices that several claims may share: how much a request takes of each capacity, and whether that is left.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/consumable_capacity.go
 */
import type { CapacityRequestPolicy, CapacityRequestPolicyRange, CapacityRequirements, Device, DeviceCapacity } from "../../api/gen/resource.v1.ts";
import { addQuantity, compareQuantity, parseQuantity, type Quantity, quantityOf } from "../../api/meta/quantity.ts";
import type { Consumed } from "./allocated.ts";

/** What the request takes of the device, by name of capacity. undefined: it asks for a capacity the device does not have, or in a size it does not give. */
export function consumedBy({ requests = {} }: CapacityRequirements, { capacity = {} }: Device): Map<string, Quantity> | undefined {
  if (Object.keys(requests).some((name) => capacity[name] === undefined)) return undefined;
  const consumed = new Map<string, Quantity>();
  for (const [name, one] of Object.entries(capacity)) {
    const asked = requests[name];
    const amount = asked === undefined ? parseQuantity(one.requestPolicy?.default ?? one.value) : roundedUp(parseQuantity(asked), one);
    if (violates(amount, one.requestPolicy)) return undefined;
    consumed.set(name, amount);
  }
  return consumed;
}

/** Whether `consumed` is left beside what others have taken. */
export function fits(consumed: Consumed, { capacity = {} }: Device, taken: readonly (Consumed | undefined)[]): boolean {
  return [...consumed].every(([name, amount]) => {
    const total = taken.reduce((sum, one) => (one?.has(name) ? addQuantity(sum, one.get(name)!) : sum), amount);
    return compareQuantity(total, parseQuantity(capacity[name]!.value)) <= 0;
  });
}

function roundedUp(asked: Quantity, { requestPolicy }: DeviceCapacity): Quantity {
  const { validRange, validValues } = requestPolicy ?? {};
  if (validRange?.min !== undefined) return roundedToRange(asked, validRange);
  const value = validValues?.map(parseQuantity).find((one) => compareQuantity(asked, one) <= 0);
  return value ?? asked;
}

function roundedToRange(asked: Quantity, { min = "0", step }: CapacityRequestPolicyRange): Quantity {
  const least = parseQuantity(min);
  if (compareQuantity(asked, least) < 0) return least;
  if (step === undefined) return asked;
  const by = whole(parseQuantity(step));
  const above = whole(asked) - whole(least);
  return quantityOf(whole(least) + by * ((above + by - 1n) / by), "BinarySI");
}

function violates(amount: Quantity, policy: CapacityRequestPolicy | undefined): boolean {
  if (!policy || (policy.default !== undefined && compareQuantity(amount, parseQuantity(policy.default)) === 0)) return false;
  const { validRange, validValues = [] } = policy;
  if (validRange) {
    const { min = "0", max, step } = validRange;
    if (max !== undefined && compareQuantity(amount, parseQuantity(max)) > 0) return true;
    return step !== undefined && (whole(amount) - whole(parseQuantity(min))) % whole(parseQuantity(step)) !== 0n;
  }
  return validValues.length > 0 && !validValues.some((value) => compareQuantity(amount, parseQuantity(value)) === 0);
}

function whole(quantity: Quantity): bigint {
  return quantity.roundUp(0).scaledValue(0);
}
