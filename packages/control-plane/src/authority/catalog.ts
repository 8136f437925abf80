import { deploymentRows } from "../storage/deployments.ts";
import { findParticipantByDigest } from "../storage/participants.ts";
import type { Queries } from "../storage/storage.ts";
import { type AuthorityArtifact, storedArtifact } from "./artifact.ts";
import type { Provider } from "./binding.ts";

const artifactLimit = 2048;

/** Artifacts by participant and digest, parsed once: a revision never changes. */
export class Catalog {
  readonly #artifacts = new Map<string, AuthorityArtifact>();

  /** The artifact of a revision that is installed; `undefined` when it is not. */
  async artifact(queries: Queries, id: string, digest: string): Promise<AuthorityArtifact | undefined> {
    const key = `${id} ${digest}`;
    const known = this.#artifacts.get(key);
    if (known !== undefined) return known;
    const row = await findParticipantByDigest(queries, id, digest);
    if (row === undefined) return undefined;
    const artifact = storedArtifact(row.artifact);
    if (this.#artifacts.size >= artifactLimit) this.#artifacts.clear();
    this.#artifacts.set(key, artifact);
    return artifact;
  }

  /** Every deployment as a possible provider. */
  async providers(queries: Queries): Promise<Provider[]> {
    const providers: Provider[] = [];
    for (const row of await deploymentRows(queries)) {
      const artifact = await this.artifact(queries, row.participantId, row.participantDigest);
      if (artifact !== undefined) providers.push({ id: row.id, disabled: row.disabled === 1, artifact });
    }
    return providers;
  }
}
