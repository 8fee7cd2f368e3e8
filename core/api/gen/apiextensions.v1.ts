// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { Status } from "./meta.v1.ts";
export type ConditionStatus = string;
export interface ConversionRequest {
  uid: string;
  desiredAPIVersion: string;
  objects: unknown[];
}
export interface ConversionResponse {
  uid: string;
  convertedObjects: unknown[];
  result: Status;
}
export interface ConversionReview {
  apiVersion: string;
  kind: string;
  request?: ConversionRequest | undefined;
  response?: ConversionResponse | undefined;
}
export type ConversionStrategyType = string;
export interface CustomResourceColumnDefinition {
  name: string;
  type: string;
  format?: string | undefined;
  description?: string | undefined;
  priority?: number | undefined;
  jsonPath: string;
}
export interface CustomResourceConversion {
  strategy: ConversionStrategyType;
  webhook?: WebhookConversion | undefined;
}
export interface CustomResourceDefinition {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: CustomResourceDefinitionSpec;
  status?: CustomResourceDefinitionStatus | undefined;
}
export interface CustomResourceDefinitionCondition {
  type: CustomResourceDefinitionConditionType;
  status: ConditionStatus;
  lastTransitionTime?: string | undefined;
  reason?: string | undefined;
  message?: string | undefined;
  observedGeneration?: number | undefined;
}
export type CustomResourceDefinitionConditionType = string;
export interface CustomResourceDefinitionNames {
  plural: string;
  singular?: string | undefined;
  shortNames?: string[] | undefined;
  kind: string;
  listKind?: string | undefined;
  categories?: string[] | undefined;
}
export interface CustomResourceDefinitionSpec {
  group: string;
  names: CustomResourceDefinitionNames;
  scope: ResourceScope;
  versions: CustomResourceDefinitionVersion[];
  conversion?: CustomResourceConversion | undefined;
  preserveUnknownFields?: boolean | undefined;
}
export interface CustomResourceDefinitionStatus {
  conditions: CustomResourceDefinitionCondition[];
  acceptedNames: CustomResourceDefinitionNames;
  storedVersions: string[];
  observedGeneration?: number | undefined;
}
export interface CustomResourceDefinitionVersion {
  name: string;
  served: boolean;
  storage: boolean;
  deprecated?: boolean | undefined;
  deprecationWarning?: string | undefined;
  schema?: CustomResourceValidation | undefined;
  subresources?: CustomResourceSubresources | undefined;
  additionalPrinterColumns?: CustomResourceColumnDefinition[] | undefined;
  selectableFields?: SelectableField[] | undefined;
}
export interface CustomResourceSubresourceScale {
  specReplicasPath: string;
  statusReplicasPath: string;
  labelSelectorPath?: string | undefined;
}
export interface CustomResourceSubresources {
  status?: Record<string, never> | undefined;
  scale?: CustomResourceSubresourceScale | undefined;
}
export interface CustomResourceValidation {
  openAPIV3Schema?: JSONSchemaProps | undefined;
}
export interface ExternalDocumentation {
  description?: string | undefined;
  url?: string | undefined;
}
export type FieldValueErrorReason = "FieldValueDuplicate" | "FieldValueForbidden" | "FieldValueInvalid" | "FieldValueRequired";
export type JSONSchemaDefinitions = Record<string, JSONSchemaProps>;
export type JSONSchemaDependencies = Record<string, unknown>;
export interface JSONSchemaProps {
  id?: string | undefined;
  $schema?: JSONSchemaURL | undefined;
  $ref?: string | undefined;
  description?: string | undefined;
  type?: string | undefined;
  format?: string | undefined;
  title?: string | undefined;
  default?: unknown | undefined;
  maximum?: number | undefined;
  exclusiveMaximum?: boolean | undefined;
  minimum?: number | undefined;
  exclusiveMinimum?: boolean | undefined;
  maxLength?: number | undefined;
  minLength?: number | undefined;
  pattern?: string | undefined;
  maxItems?: number | undefined;
  minItems?: number | undefined;
  uniqueItems?: boolean | undefined;
  multipleOf?: number | undefined;
  enum?: unknown[] | undefined;
  maxProperties?: number | undefined;
  minProperties?: number | undefined;
  required?: string[] | undefined;
  items?: unknown | undefined;
  allOf?: JSONSchemaProps[] | undefined;
  oneOf?: JSONSchemaProps[] | undefined;
  anyOf?: JSONSchemaProps[] | undefined;
  not?: JSONSchemaProps | undefined;
  properties?: Record<string, JSONSchemaProps> | undefined;
  additionalProperties?: unknown | undefined;
  patternProperties?: Record<string, JSONSchemaProps> | undefined;
  dependencies?: JSONSchemaDependencies | undefined;
  additionalItems?: unknown | undefined;
  definitions?: JSONSchemaDefinitions | undefined;
  externalDocs?: ExternalDocumentation | undefined;
  example?: unknown | undefined;
  nullable?: boolean | undefined;
  "x-kubernetes-preserve-unknown-fields"?: boolean | undefined;
  "x-kubernetes-embedded-resource"?: boolean | undefined;
  "x-kubernetes-int-or-string"?: boolean | undefined;
  "x-kubernetes-list-map-keys"?: string[] | undefined;
  "x-kubernetes-list-type"?: string | undefined;
  "x-kubernetes-map-type"?: string | undefined;
  "x-kubernetes-validations"?: ValidationRules | undefined;
}
export type JSONSchemaURL = string;
export type ResourceScope = string;
export interface SelectableField {
  jsonPath: string;
}
export interface ServiceReference {
  namespace: string;
  name: string;
  path?: string | undefined;
  port?: number | undefined;
}
export interface ValidationRule {
  rule: string;
  message?: string | undefined;
  messageExpression?: string | undefined;
  reason?: FieldValueErrorReason | undefined;
  fieldPath?: string | undefined;
  optionalOldSelf?: boolean | undefined;
}
export type ValidationRules = ValidationRule[];
export interface WebhookClientConfig {
  url?: string | undefined;
  service?: ServiceReference | undefined;
  caBundle?: string | undefined;
}
export interface WebhookConversion {
  clientConfig?: WebhookClientConfig | undefined;
  conversionReviewVersions: string[];
}
