import { err, ok, type Result } from "@trellis/result";
import type { StoreFailure, StoreInfo } from "@trellis/runtime";
import { NotKnown } from "../core/errors.ts";
import { ResourceRefused, type ResourcesHandlers, type ResourcesHandlersOf } from "./api.ts";
import type { ObjectTransfers } from "./object-transfers.ts";
import type { ResourceDesk } from "./resource-desk.ts";

type Refused = InstanceType<typeof ResourceRefused>;

/** What is in the object stores of deployments. */
export function storeHandlers(desk: ResourceDesk, transfers: ObjectTransfers): ResourcesHandlersOf<"Store"> {
  return {
    ...transferHandlers(desk, transfers),

    "Resources.Store.List": async (input) => {
      const store = await desk.store(input);
      if (store.isErr()) return err(store.error);
      const { prefix, cursor, limit } = input;
      if (cursor === undefined) await desk.audit("store.list", input, prefix);
      const page = await store.value.list({
        ...(prefix === undefined ? {} : { prefix }),
        ...(cursor === undefined ? {} : { cursor }),
        ...(limit === undefined ? {} : { limit }),
      });
      if (page.isErr()) return err(refusedBy(page.error));
      const { items, unreadable, cursor: next } = page.value;
      return ok({
        objects: items.map(view),
        unreadable: [...unreadable],
        ...(next === undefined ? {} : { cursor: next }),
      });
    },

    "Resources.Store.Head": async (input) => {
      const store = await desk.store(input);
      if (store.isErr()) return err(store.error);
      const found = await store.value.head(input.key);
      if (found.isErr()) return err(refusedBy(found.error));
      return found.value === undefined ? unknown(input.key) : ok({ object: view(found.value) });
    },

    "Resources.Store.Delete": async (input) => {
      const store = await desk.store(input);
      if (store.isErr()) return err(store.error);
      await desk.audit("store.delete", input, input.key);
      return asRefused(await store.value.delete(input.key)).map((deleted) => ({ deleted }));
    },
  };
}

/** Objects on their way, in pieces. */
function transferHandlers(
  desk: ResourceDesk,
  transfers: ObjectTransfers,
): Pick<ResourcesHandlers, "Resources.Store.Read" | "Resources.Store.Write"> {
  return {
    "Resources.Store.Read": async (input) => {
      const store = await desk.store(input);
      if (store.isErr()) return err(store.error);
      let { transfer } = input;
      if (transfer === undefined) {
        await desk.audit("store.read", input, input.key);
        const begun = await transfers.begin(store.value, input.key);
        if (begun.isErr()) return err(refusedBy(begun.error));
        if (begun.value === undefined) return unknown(input.key);
        transfer = begun.value;
      }
      const read = await transfers.read(transfer, input.offset);
      if (read.isErr()) return err(read.error);
      const { data, done, info } = read.value;
      return ok({ transfer, object: view(info), data: Buffer.from(data).toString("base64"), done });
    },

    "Resources.Store.Write": async (input) => {
      const store = await desk.store(input);
      if (store.isErr()) return err(store.error);
      const { key, offset, digest, contentType } = input;
      let { transfer } = input;
      if (transfer === undefined) {
        await desk.audit("store.write", input, key);
        transfer = transfers.beginUpload(store.value, key, contentType);
      }
      const data = Buffer.from(input.data, "base64");
      const written = await transfers.write(transfer, { offset, data, digest });
      if (written.isErr()) return err(written.error);
      const { received, info } = written.value;
      return ok({ transfer, received, ...(info === undefined ? {} : { object: view(info) }) });
    },
  };
}

function view({ key, size, updatedAt, digest, contentType, metadata }: StoreInfo) {
  const type = contentType === undefined ? {} : { contentType };
  return { key, size, updatedAt: updatedAt.getTime(), digest, ...type, metadata: { ...metadata } };
}

function unknown(key: string): Result<never, InstanceType<typeof NotKnown>> {
  return err(new NotKnown({ data: { kind: "object", id: key } }));
}

function asRefused<T>(result: Result<T, StoreFailure>): Result<T, Refused> {
  return result.mapErr(refusedBy);
}

function refusedBy({ message: problem }: StoreFailure): Refused {
  return new ResourceRefused({ data: { problem } });
}
