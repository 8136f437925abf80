import type { ConnectedService } from "@trellis/runtime/service";
import type { EventsHandlers } from "../events/api.ts";
import { eventsHandlers } from "../events/handlers.ts";
import { listenHandler } from "../events/listen.ts";
import type { Plane } from "../plane.ts";
import type { Calling } from "./calling.ts";
import type { platformParticipant } from "./participants.ts";

/** Serves the API of events; a listener is made for the very connection that asks. */
export function handleEvents(
  service: ConnectedService<typeof platformParticipant>,
  plane: Plane,
  owner: string | null,
): void {
  const on = ({ caller }: Calling): EventsHandlers =>
    eventsHandlers(plane, { name: `${caller.participant.id}/${caller.instance}`, owner });
  const { events } = service.handle.rpc;
  events.consumersList(({ input, context }) => on(context)["Events.Consumers.List"](input));
  events.deadLettersList(({ input, context }) => on(context)["Events.DeadLetters.List"](input));
  events.deadLettersGet(({ input, context }) => on(context)["Events.DeadLetters.Get"](input));
  events.deadLettersReplay(({ input, context }) => on(context)["Events.DeadLetters.Replay"](input));
  events.deadLettersDiscard(({ input, context }) => on(context)["Events.DeadLetters.Discard"](input));
  events.recent(({ input, context }) => on(context)["Events.Recent"](input));
  events.listen(({ input, context }) => listenHandler(plane, context.caller.connectionId)(input));
}
