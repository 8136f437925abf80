import type { PlainLink } from "@trellis/runtime/node";
import type { ConnectedService } from "@trellis/runtime/service";
import type { Plane } from "../plane.ts";
import type { ResourcesHandlers } from "../resources/api.ts";
import { resourcesHandlers } from "../resources/handlers.ts";
import { watchBucket } from "../resources/kv-handlers.ts";
import { ObjectTransfers } from "../resources/object-transfers.ts";
import { ResourceDesk } from "../resources/resource-desk.ts";
import type { Calling } from "./calling.ts";
import type { platformParticipant } from "./participants.ts";

/** Serves the API of resources and of what is in them. */
export function handleResources(
  service: ConnectedService<typeof platformParticipant>,
  plane: Plane,
  link: PlainLink,
): void {
  const transfers = new ObjectTransfers(plane.config.clock);
  const depsOf = ({ caller }: Calling) => {
    return { plane, link, actor: `${caller.participant.id}/${caller.instance}` };
  };
  const on = (calling: Calling): ResourcesHandlers => resourcesHandlers(depsOf(calling), transfers);
  const { resources } = service.handle.rpc;
  resources.list(({ input, context }) => on(context)["Resources.List"](input));
  resources.get(({ input, context }) => on(context)["Resources.Get"](input));
  resources.destroy(({ input, context }) => on(context)["Resources.Destroy"](input));
  resources.kvKeys(({ input, context }) => on(context)["Resources.Kv.Keys"](input));
  resources.kvGet(({ input, context }) => on(context)["Resources.Kv.Get"](input));
  resources.kvPut(({ input, context }) => on(context)["Resources.Kv.Put"](input));
  resources.kvDelete(({ input, context }) => on(context)["Resources.Kv.Delete"](input));
  resources.storeList(({ input, context }) => on(context)["Resources.Store.List"](input));
  resources.storeHead(({ input, context }) => on(context)["Resources.Store.Head"](input));
  resources.storeRead(({ input, context }) => on(context)["Resources.Store.Read"](input));
  resources.storeWrite(({ input, context }) => on(context)["Resources.Store.Write"](input));
  resources.storeDelete(({ input, context }) => on(context)["Resources.Store.Delete"](input));
  service.handle.feed.resources.kvWatch(({ input, context, emit, signal }) =>
    watchBucket(new ResourceDesk(depsOf(context)), input, { emit, signal }),
  );
}
