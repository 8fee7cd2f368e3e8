import { expect, test } from "vitest";
import { addQuantity, canonicalQuantity, compareQuantities, parseQuantity, quotient, roundedToMilli, subQuantity } from "./quantity.ts";

test.each([
  // written, canonical, whole units rounded up, thousandths rounded up
  ["0", "0", 0n, 0n], ["0m", "0", 0n, 0n], ["00", "0", 0n, 0n], ["1", "1", 1n, 1000n], ["100m", "100m", 1n, 100n], ["0.1", "100m", 1n, 100n],
  ["1500m", "1500m", 2n, 1500n], ["1.5", "1500m", 2n, 1500n], ["2000m", "2", 2n, 2000n], ["-1.5", "-1500m", -2n, -1500n], ["+3", "+3", 3n, 3000n],
  ["1000", "1k", 1000n, 1000000n], ["100000", "100k", 100000n, 100000000n], ["12k", "12k", 12000n, 12000000n], ["1e3", "1e3", 1000n, 1000000n],
  ["12e6", "12e6", 12000000n, 12000000000n], ["1E", "1E", 10n ** 18n, 2n ** 63n - 1n], ["0.001", "1m", 1n, 1n], ["0.0005", "500u", 1n, 1n],
  ["1n", "1n", 1n, 1n], ["0.1n", "1n", 1n, 1n], ["-0.1n", "-1n", -1n, -1n],
  ["1Ki", "1Ki", 1024n, 1024000n], ["1024Mi", "1Gi", 2n ** 30n, 2n ** 30n * 1000n], ["100Mi", "100Mi", 104857600n, 104857600000n], ["1.5Gi", "1536Mi", 1610612736n, 1610612736000n],
  ["0.5Ki", "512", 512n, 512000n], ["0.5Mi", "512Ki", 524288n, 524288000n], ["8Ki", "8Ki", 8192n, 8192000n], ["1.1Ki", "1126400m", 1127n, 1126400n],
  ["16Ei", "9223372036854775807", 2n ** 63n - 1n, 2n ** 63n - 1n], [".5", "500m", 1n, 500n], ["5.", "5.", 5n, 5000n],
  ["100", "100", 100n, 100000n], ["5k", "5k", 5000n, 5000000n], ["7000m", "7", 7n, 7000n], ["2048Ki", "2Mi", 2097152n, 2097152000n], ["1536Mi", "1536Mi", 1610612736n, 1610612736000n],
  ["99999Gi", "99999Gi", 99999n * 2n ** 30n, 99999n * 2n ** 30n * 1000n], ["1000000000000000001E", "1000000000000000001E", 2n ** 63n - 1n, 2n ** 63n - 1n],
  ["123456789012345678901", "123456789012345678901", 2n ** 63n - 1n, 2n ** 63n - 1n],
])("%s is %s", (written, canonical, value, milli) => {
  const quantity = parseQuantity(written);
  expect([quantity.toString(), quantity.value(), quantity.milliValue()]).toEqual([canonical, value, milli]);
  expect(canonicalQuantity(written)).toBe(canonical);
});

test.each([
  ["", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
  ["1.2.3", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
  ["1 Gi", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
  ["abc", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
  ["1KiB", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
  ["1K", "unable to parse quantity's suffix"], ["1mm", "unable to parse quantity's suffix"], ["1e", "unable to parse quantity's suffix"],
  ["1e999999999", "unable to parse quantity's suffix"], [".e-10", "unable to parse numeric part of quantity"],
])("%j is no quantity", (written, message) => {
  expect(() => parseQuantity(written)).toThrow(message);
});

test("sums keep the first's family, unless it is zero, and are exact", () => {
  const sum = (a: string, b: string) => addQuantity(parseQuantity(a), parseQuantity(b)).toString();
  expect([sum("1Gi", "512Mi"), sum("100m", "0.9"), sum("0", "1Gi"), sum("1Gi", "1"), sum("9007199254740993", "1n")]).toEqual(
    ["1536Mi", "1", "1Gi", "1073741825", "9007199254740993000000001n"]);
  expect(subQuantity(parseQuantity("1"), parseQuantity("250m")).toString()).toBe("750m");
});

test("comparison is by value, not by spelling", () => {
  expect([compareQuantities("1000m", "1"), compareQuantities("1Gi", "1G"), compareQuantities("999Ki", "1Mi")]).toEqual([0, 1, -1]);
  expect(canonicalQuantity(2.5)).toBe("2500m");
});

test("rounded up to thousandths, and left as it is where there is nothing to round", () => {
  expect(["500u", "0.0001", "1n", "1.5", "250m", "2Gi", "1e-4", "3k"].map(roundedToMilli)).toEqual(["1m", "1m", "1m", "1.5", "250m", "2Gi", "1e-3", "3k"]);
});

test("as a float it is what Go makes of it", () => {
  expect(["0.3", "2", "300m", "1.5Gi", "79059n", "-1e3", "88800287505782557727278020e18", "0.7e-3", "1e400"].map((text) => parseQuantity(text).approximate())).toEqual(
    [0.30000000000000004, 2, 0.3, 1610612736, 0.000079059, -1000, 8.880028750578256e43, 0.0007, Number.POSITIVE_INFINITY]);
});

test("how often one goes into another is reckoned in thousandths, as long as there are any", () => {
  const of = (a: string, b: string) => quotient(parseQuantity(a), parseQuantity(b));
  expect([of("4200m", "600m"), of("600m", "200m"), of("1", "3"), of("8E", "5E"), of("1", "0")]).toEqual([7, 3, 1000 / 3000, 1.6, Number.POSITIVE_INFINITY]);
});
