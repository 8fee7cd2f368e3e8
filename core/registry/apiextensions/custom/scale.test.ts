import { expect, test } from "vitest";
import { formatFieldError } from "../../../api/meta/field-error.ts";
import type { ApiObject } from "../../../api/meta/object-meta.ts";
import { customScale, validateScaleSpec, validateScaleStatus } from "./scale.ts";

const PATHS = { specReplicasPath: ".spec.size", statusReplicasPath: ".status.ready.count", labelSelectorPath: ".status.selector" };
const metadata = { name: "a", namespace: "n", uid: "u", resourceVersion: "7", creationTimestamp: "2026-01-01T00:00:00Z" };
const box = (more: object = {}): ApiObject => ({ apiVersion: "x.io/v1", kind: "Box", metadata: { ...metadata, labels: { not: "shown" } }, ...more });

test("a Scale says what stands where its definition says, so that an autoscaler finds the pods", () => {
  const full = box({ spec: { size: 3 }, status: { ready: { count: 2 }, selector: "app=a" } });
  expect(customScale(PATHS).show!(full)).toEqual({ kind: "Scale", apiVersion: "autoscaling/v1", metadata, spec: { replicas: 3 }, status: { replicas: 2, selector: "app=a" } });
  expect(customScale({ specReplicasPath: PATHS.specReplicasPath, statusReplicasPath: PATHS.statusReplicasPath }).show!(full)).toMatchObject({ status: { replicas: 2 } });
  expect(customScale(PATHS).show!(box({ spec: { size: 3 }, status: { ready: null } }))).toMatchObject({ status: { replicas: 0 } });
  expect(() => customScale(PATHS).show!(box({ status: {} }))).toThrow('the spec replicas field ".spec.size" does not exist');
});

test("who scales changes that number, and nothing that others still hold", () => {
  const { draft, write } = customScale(PATHS);
  const spec = Object.freeze({ size: 3, other: "x" }), object = box({ spec });
  write!(object, { ...draft!(object), spec: { replicas: 5 } } as never);
  expect([object, spec.size]).toEqual([box({ spec: { size: 5, other: "x" } }), 3]);
  const bare = box();
  write!(bare, { ...draft!(bare), spec: { replicas: 1 } } as never);
  expect(bare).toEqual(box({ spec: { size: 1 } }));
});

test.each<[object, string[]]>([
  [{}, []], [{ spec: { size: 1 }, status: { ready: { count: 1 }, selector: "a=b" } }, []],
  [{ spec: { size: -1 }, status: { ready: { count: -1 } } }, [".spec.size: Invalid value: -1: should be a non-negative integer", ".status.ready.count: Invalid value: -1: should be a non-negative integer"]],
  [{ spec: { size: 2 ** 31 } }, [".spec.size: Invalid value: 2147483648: should be less than or equal to 2147483647"]], [{ spec: { size: 2 ** 31 - 1 } }, []],
  [{ spec: { size: "1" }, status: { ready: [], selector: 5 } }, [
    ".spec.size: Invalid value: 0: .spec.size accessor error: 1 is of the type string, expected int64",
    ".status.ready.count: Invalid value: 0: .status.ready.count accessor error: [] is of the type []interface {}, expected map[string]interface{}",
    '.status.selector: Invalid value: "": .status.selector accessor error: 5 is of the type int64, expected string',
  ]],
  [{ status: { selector: null } }, ['.status.selector: Invalid value: "": .status.selector accessor error: <nil> is of the type <nil>, expected string']],
])("what of %j cannot be scaled is told as upstream tells it", (content, errors) => {
  expect([...validateScaleSpec(content as never, PATHS), ...validateScaleStatus(content as never, PATHS)].map(formatFieldError)).toEqual(errors);
});
