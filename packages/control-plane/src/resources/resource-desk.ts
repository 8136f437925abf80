import { compileSchema, type KvResource } from "@trellis/contract";
import { err, ok, type Result } from "@trellis/result";
import { KvBucket, type PlainLink, StreamObjectStore } from "@trellis/runtime/node";
import { Type } from "typebox";
import { NotKnown } from "../core/errors.ts";
import type { Plane } from "../plane.ts";
import { type DeploymentRow, findDeploymentNamed } from "../storage/deployments.ts";
import { findParticipantByDigest } from "../storage/participants.ts";
import { type ResourceRow, resourcesOf } from "../storage/resources.ts";
import { ResourceRefused } from "./api.ts";
import { kvBinding, storeBinding } from "./bound-resources.ts";
import { wantedOf } from "./wanted.ts";

export type Unknown = InstanceType<typeof NotKnown>;
export type Refused = InstanceType<typeof ResourceRefused>;

export interface Place {
  readonly deployment: string;
  readonly alias: string;
}

/** What handlers work on; `actor` stands in the audit rows. */
export interface ResourceDeps {
  readonly plane: Plane;
  readonly link: PlainLink;
  readonly actor: string;
}

type Rules = Pick<KvResource, "value" | "version" | "migrate">;

const timeoutMs = 10_000;
const anything: Rules = { value: compileSchema(Type.Unknown()), version: 1, migrate: {} };

/** Finds what a deployment has, and opens it with the platform's own rights. */
export class ResourceDesk {
  readonly #deps: ResourceDeps;

  constructor(deps: ResourceDeps) {
    this.#deps = deps;
  }

  async find(
    { deployment, alias }: Place,
    kind: ResourceRow["kind"],
  ): Promise<Result<{ row: ResourceRow; deployment: DeploymentRow }, Unknown>> {
    const { queries } = this.#deps.plane.storage;
    const owner = await findDeploymentNamed(queries, deployment);
    if (owner === undefined) return err(new NotKnown({ data: { kind: "deployment", id: deployment } }));
    const rows = await resourcesOf(queries, owner.id);
    const row = rows.find((each) => each.kind === kind && each.alias === alias);
    if (row !== undefined) return ok({ row, deployment: owner });
    const id = alias === "" ? owner.name : `${owner.name}/${alias}`;
    return err(new NotKnown({ data: { kind, id } }));
  }

  /** A bucket as it is stored: nothing is migrated, and every value that is JSON is read. */
  async bucket(place: Place): Promise<Result<KvBucket, Unknown>> {
    const found = await this.find(place, "kv");
    return found.map(({ row }) => this.#open(row, anything, true));
  }

  /** A bucket to be written: by the rules of the contract that is deployed. */
  async writable(place: Place): Promise<Result<KvBucket, Unknown | Refused>> {
    const found = await this.find(place, "kv");
    if (found.isErr()) return err(found.error);
    const { row, deployment } = found.value;
    const declared = await this.#declared(deployment, row.alias);
    if (declared !== undefined) return ok(this.#open(row, declared));
    const problem = `The deployment's contract no longer declares "${row.alias}": nothing says what fits it.`;
    return err(new ResourceRefused({ data: { problem } }));
  }

  async store(place: Place): Promise<Result<StreamObjectStore, Unknown>> {
    const found = await this.find(place, "store");
    return found.map(({ row }) => {
      const wanted = wantedOf(row);
      if (wanted.kind !== "store") throw new Error("A row of a store holds something else.");
      const { link } = this.#deps;
      const binding = storeBinding(wanted.name, wanted.spec);
      return new StreamObjectStore({ link, requests: link.requests, binding, timeoutMs });
    });
  }

  /** A row of its own in the audit; `where` names what was touched. */
  async audit(action: string, { deployment, alias }: Place, key = ""): Promise<void> {
    const { plane, actor } = this.#deps;
    const subject = `${deployment}/${alias}`;
    const detail = key === "" ? {} : { key };
    await plane.storage.mutate(
      plane.revoker.audit(actor, `resources.${action}`, subject, detail),
      async () => {},
    );
  }

  #open(row: ResourceRow, resource: Rules, asStored = false): KvBucket {
    const wanted = wantedOf(row);
    if (wanted.kind !== "kv") throw new Error("A row of a bucket holds something else.");
    const { link } = this.#deps;
    const binding = kvBinding(wanted.name, wanted.spec);
    return new KvBucket({ link, requests: link.requests, binding, resource, asStored, timeoutMs });
  }

  async #declared(deployment: DeploymentRow, alias: string): Promise<Rules | undefined> {
    const { participantId, participantDigest } = deployment;
    const { queries } = this.#deps.plane.storage;
    const participant = await findParticipantByDigest(queries, participantId, participantDigest);
    if (participant === undefined) return undefined;
    const { kv } = JSON.parse(participant.artifact) as {
      kv: Record<string, { value: Record<string, unknown>; version: number } | undefined>;
    };
    const declared = Object.hasOwn(kv, alias) ? kv[alias] : undefined;
    if (declared === undefined) return undefined;
    const value = compileSchema(Type.Unsafe<unknown>(declared.value));
    return { value, version: declared.version, migrate: {} };
  }
}
