import { err, type Result } from "@trellis/result";
import { PlatformOwned } from "./errors.ts";

/**
 * Refuses to change what is the platform's own: to disable it would lock every administrator out, and a second
 * instance of it would hold its route key.
 */
export function platformOwned(participantId: string): Result<never, InstanceType<typeof PlatformOwned>> {
  return err(new PlatformOwned({ data: { id: participantId } }));
}
