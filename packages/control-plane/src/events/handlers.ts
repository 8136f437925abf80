import { utf8Text } from "@trellis/protocol";
import { err, ok, type Result } from "@trellis/result";
import { type CursorInvalid, NotKnown } from "../core/errors.ts";
import { nextCursor, readPage } from "../core/page.ts";
import type { Plane } from "../plane.ts";
import { secretOf } from "../resources/wanted.ts";
import { findDeployment, findDeploymentNamed } from "../storage/deployments.ts";
import { resourcesOf } from "../storage/resources.ts";
import type { EventsHandlers } from "./api.ts";
import type { ConsumerPlace, DeadLetterDesk, StoredLetter } from "./dead-letter-desk.ts";

export interface EventsDeps {
  readonly plane: Plane;
  readonly desk: DeadLetterDesk;
  /** Stands in the audit rows. */
  readonly actor: string;
}

type Unknown = InstanceType<typeof NotKnown>;
type Asked = Parameters<EventsHandlers["Events.DeadLetters.Replay"]>[0];

/** The handlers of `trellis.events@v1` over one control plane. */
export function eventsHandlers(deps: EventsDeps): EventsHandlers {
  const { plane, desk } = deps;
  const { queries } = plane.storage;
  return {
    "Events.Consumers.List": async ({ deployment }) => {
      const one = deployment === undefined ? undefined : await findDeploymentNamed(queries, deployment);
      if (deployment !== undefined && one === undefined) return unknown("deployment", deployment);
      const rows = await queries
        .selectFrom("resources")
        .select(["deploymentId", "alias"])
        .where("kind", "=", "consumer")
        .$if(one !== undefined, (query) => query.where("deploymentId", "=", one?.id ?? ""))
        .execute();
      const consumers = [];
      for (const { deploymentId, alias } of rows) {
        const row = await findDeployment(queries, deploymentId);
        if (row === undefined) continue;
        const standing = await desk.standing({ secret: secretOf(row), alias });
        consumers.push({ deployment: deploymentId, service: row.name, consumer: alias, ...standing });
      }
      return ok({ consumers });
    },

    "Events.DeadLetters.List": async (input) => {
      const place = await placeOf(deps, input);
      if (place.isErr()) return err(place.error);
      const page = readPage("dead-letters", input);
      if (page.isErr()) return err(page.error);
      const { limit, after } = page.value;
      const { letters, next } = await desk.page(place.value, Number(after ?? 1), limit);
      return ok({ letters: letters.map(viewOf), ...nextCursor("dead-letters", next?.toString()) });
    },

    "Events.DeadLetters.Get": async (input) => {
      const place = await placeOf(deps, input);
      if (place.isErr()) return err(place.error);
      const letter = await desk.get(place.value, input.sequence);
      if (letter === undefined) return unknown("dead letter", String(input.sequence));
      const data = await desk.payload(letter);
      const payload = data === undefined ? undefined : utf8Text(data);
      return ok({ letter: viewOf(letter), ...(payload === undefined ? {} : { payload }) });
    },

    "Events.DeadLetters.Replay": (input) =>
      change(deps, input, { action: "replay", one: (place, letter) => desk.replay(place, letter) }),

    "Events.DeadLetters.Discard": (input) =>
      change(deps, input, {
        action: "discard",
        one: async (place, letter) => {
          await desk.discard(place, letter);
          return true;
        },
      }),
  };
}

async function change(
  deps: EventsDeps,
  input: Asked,
  { action, one }: { action: string; one: (place: ConsumerPlace, letter: StoredLetter) => Promise<boolean> },
): Promise<Result<{ changed: number; cursor?: string }, Unknown | InstanceType<typeof CursorInvalid>>> {
  const { plane, desk, actor } = deps;
  const found = await placeOf(deps, input);
  if (found.isErr()) return err(found.error);
  const place = found.value;
  const audit = plane.revoker.audit(actor, `dead_letters.${action}`, `${input.deployment}/${input.consumer}`);
  await plane.storage.mutate(audit, () => Promise.resolve());
  if (input.sequence !== undefined) {
    const letter = await desk.get(place, input.sequence);
    if (letter === undefined) return unknown("dead letter", String(input.sequence));
    return ok({ changed: (await one(place, letter)) ? 1 : 0 });
  }
  const page = readPage("dead-letters", input);
  if (page.isErr()) return err(page.error);
  const { letters, next } = await desk.page(place, Number(page.value.after ?? 1), page.value.limit);
  let changed = 0;
  // One after the other: in the order in which they came.
  for (const letter of letters) if (await one(place, letter)) changed += 1;
  return ok({ changed, ...nextCursor("dead-letters", next?.toString()) });
}

async function placeOf(
  { plane }: EventsDeps,
  { deployment, consumer }: { deployment: string; consumer: string },
): Promise<Result<ConsumerPlace, Unknown>> {
  const { queries } = plane.storage;
  const row = await findDeploymentNamed(queries, deployment);
  if (row === undefined) return unknown("deployment", deployment);
  const rows = await resourcesOf(queries, row.id);
  const there = rows.some(({ kind, alias }) => kind === "consumer" && alias === consumer);
  return there ? ok({ secret: secretOf(row), alias: consumer }) : unknown("consumer", consumer);
}

function viewOf({ sequence, event, api, eventId, letter }: StoredLetter) {
  const { reason, error, attempts, storedAt, at } = letter;
  return { sequence, event, api, eventId, reason, error, attempts, storedAt, at };
}

function unknown(kind: string, id: string) {
  return err(new NotKnown({ data: { kind, id } }));
}
