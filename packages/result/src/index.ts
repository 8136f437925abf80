export { AsyncResult, type Deferred } from "./async-result.ts";
export { BaseError, type BaseErrorOptions, isBaseError, type SerializedError } from "./base-error.ts";
export type { JsonArray, JsonObject, JsonValue } from "./json.ts";
export {
  type Arms,
  Err,
  type ErrorOf,
  err,
  isErr,
  isOk,
  isResult,
  Ok,
  ok,
  Result,
  type ValueOf,
} from "./result.ts";
export { UnexpectedError, type UnexpectedErrorOptions } from "./unexpected-error.ts";
