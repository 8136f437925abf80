import { type Authorization, REVOCATION_SUBJECTS, type Revocation, revocableIds } from "@trellis/protocol";

/**
 * All revocations that this process has read. Sticky: nothing takes one away. A revocation hits what was
 * authorised up to its instant; an authorization that was issued later, after the subject was enabled again,
 * is not touched.
 */
export class Revocations {
  readonly #at = new Map<string, number>();

  /** Takes one in; false when it tells nothing new. */
  add(revocation: Revocation): boolean {
    const key = keyOf(revocation.subject.kind, revocation.subject.id);
    const known = this.#at.get(key);
    if (known !== undefined && known >= revocation.at) return false;
    this.#at.set(key, revocation.at);
    return true;
  }

  /** True when any of the things that the authorization rests on was revoked at or after its beginning. */
  covers(authorization: Authorization): boolean {
    if (this.#at.size === 0) return false;
    const ids = revocableIds(authorization);
    return REVOCATION_SUBJECTS.some((kind) => this.#hits(kind, ids[kind], authorization.notBefore));
  }

  /** The earliest instant at which something that the authorization rests on was revoked after its beginning. */
  revokedAt(authorization: Authorization): number | undefined {
    if (this.#at.size === 0) return undefined;
    const ids = revocableIds(authorization);
    let earliest: number | undefined;
    for (const kind of REVOCATION_SUBJECTS) {
      const at = this.#at.get(keyOf(kind, ids[kind]));
      if (at === undefined || at < authorization.notBefore) continue;
      if (earliest === undefined || at < earliest) earliest = at;
    }
    return earliest;
  }

  #hits(kind: string, id: string, notBefore: number): boolean {
    const at = this.#at.get(keyOf(kind, id));
    return at !== undefined && at >= notBefore;
  }
}

function keyOf(kind: string, id: string): string {
  return `${kind} ${id}`;
}
