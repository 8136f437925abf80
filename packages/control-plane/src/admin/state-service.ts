import type { ConnectedService } from "@trellis/runtime/service";
import type { Plane } from "../plane.ts";
import { stateHandlers } from "../state/handlers.ts";
import type { platformParticipant } from "./participants.ts";

/** Serves the API of state, to each caller its own. */
export function handleState(service: ConnectedService<typeof platformParticipant>, plane: Plane): void {
  const { state } = service.handle.rpc;
  state.get(({ input, context: { caller } }) => stateHandlers({ plane, caller })["State.Get"](input));
  state.put(({ input, context: { caller } }) => stateHandlers({ plane, caller })["State.Put"](input));
  state.delete(({ input, context: { caller } }) => stateHandlers({ plane, caller })["State.Delete"](input));
}
