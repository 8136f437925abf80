import type { JsonObject } from "@trellis/result";
import { DefinitionError } from "../errors/definition-error.ts";
import type { CompiledSchema } from "./compiled-schema.ts";
import { isRecord } from "./walk.ts";

const POINTER = /^(?:\/(?:[^~/]|~0|~1)*)+$/;

/**
 * Refuses a JSON pointer that leads nowhere in a schema. A schema that does not list its members (a union, a
 * reference, an open record) is believed: there the value decides, when it comes.
 */
export function requirePointer(place: string, pointer: string, schema: CompiledSchema | undefined): void {
  if (!POINTER.test(pointer)) {
    throw new DefinitionError({
      place,
      problem: `${JSON.stringify(pointer)} is not a JSON pointer`,
      hint: "Write it like /orderId",
    });
  }
  let at: JsonObject | undefined = schema?.json;
  for (const segment of pointer.slice(1).split("/")) {
    const name = segment.replaceAll("~1", "/").replaceAll("~0", "~");
    const properties = at?.["properties"];
    if (at === undefined || !isRecord(properties)) break;
    if (!Object.hasOwn(properties, name)) {
      if (at["additionalProperties"] !== undefined && at["additionalProperties"] !== false) return;
      throw new DefinitionError({
        place,
        problem: `${JSON.stringify(pointer)} leads nowhere: there is no ${JSON.stringify(name)}`,
        hint: `There is: ${Object.keys(properties).join(", ")}`,
      });
    }
    const next = properties[name];
    at = isRecord(next) ? next : undefined;
  }
  if (schema === undefined) {
    throw new DefinitionError({ place, problem: "there is no schema that it could point into" });
  }
}
