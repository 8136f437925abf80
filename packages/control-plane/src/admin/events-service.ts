import type { PlainLink } from "@trellis/runtime/node";
import type { ConnectedService } from "@trellis/runtime/service";
import type { EventsHandlers } from "../events/api.ts";
import { DeadLetterDesk } from "../events/dead-letter-desk.ts";
import { eventsHandlers } from "../events/handlers.ts";
import type { Plane } from "../plane.ts";
import type { Calling } from "./calling.ts";
import type { platformParticipant } from "./participants.ts";

/** Serves the API of consumers and dead letters. */
export function handleEvents(
  service: ConnectedService<typeof platformParticipant>,
  plane: Plane,
  link: PlainLink,
): void {
  const desk = new DeadLetterDesk(link);
  const on = ({ caller }: Calling): EventsHandlers =>
    eventsHandlers({ plane, desk, actor: `${caller.participant.id}/${caller.instance}` });
  const { events } = service.handle.rpc;
  events.consumersList(({ input, context }) => on(context)["Events.Consumers.List"](input));
  events.deadLettersList(({ input, context }) => on(context)["Events.DeadLetters.List"](input));
  events.deadLettersGet(({ input, context }) => on(context)["Events.DeadLetters.Get"](input));
  events.deadLettersReplay(({ input, context }) => on(context)["Events.DeadLetters.Replay"](input));
  events.deadLettersDiscard(({ input, context }) => on(context)["Events.DeadLetters.Discard"](input));
}
