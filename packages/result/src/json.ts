/** A value that JSON text can carry and give back unchanged. */
export type JsonValue = string | number | boolean | null | JsonArray | JsonObject;

/** A JSON array. */
export type JsonArray = readonly JsonValue[];

/** A JSON object. A member that is `undefined` is left out when it is written. */
export interface JsonObject {
  readonly [key: string]: JsonValue | undefined;
}
