import { idToken, requireToken } from "./token.ts";

// What applications see of the control plane's own account. Authorizations and revocations are kept in an account
// of their own (CTL); applications (APP) reach them only by service imports of direct gets and by a republish
// export, so that nobody in APP can make the server store a message there.

/** The stream, in CTL, of signed authorizations and of grants, both by digest. */
export const AUTHORIZATION_STREAM = "TRELLIS_AUTHORIZATIONS";

/** The stream, in CTL, of signed notices: revocations, connection ends and route rolls; the last of each subject. */
export const NOTICE_STREAM = "TRELLIS_NOTICES";

/** The kinds of signed notice. */
export const NOTICE_KINDS = ["revocation", "connection-end", "route"] as const;

export type NoticeKind = (typeof NOTICE_KINDS)[number];

/** A notice's live subject, in APP. `id` says what it is about: see {@link revocationNoticeId}. */
export function noticeSubject(kind: NoticeKind, id: string): string {
  return `ctl.${storedNoticeSubject(kind, id)}`;
}

/** A notice's subject in {@link NOTICE_STREAM}. */
export function storedNoticeSubject(kind: NoticeKind, id: string): string {
  return `notice.${kind}.${idToken(id)}`;
}

/** Every live notice, in APP. */
export const NOTICE_FILTER = "ctl.notice.>";

/** The notice id of what a revocation is about: one standing revocation for each subject. */
export function revocationNoticeId(subject: { kind: string; id: string }): string {
  return `${requireToken(subject.kind, "kind")}-${subject.id}`;
}

/** An authorization's subject in {@link AUTHORIZATION_STREAM}. */
export function storedAuthorizationSubject(digest: string): string {
  return `authorization.${requireToken(digest, "digest")}`;
}

/** The grants' subject in {@link AUTHORIZATION_STREAM}. */
export function storedGrantsSubject(digest: string): string {
  return `grants.${requireToken(digest, "digest")}`;
}

/** A request in APP for one authorization; answered by a direct get of the last message. */
export function authorizationGetSubject(digest: string): string {
  return `ctl.get.${storedAuthorizationSubject(digest)}`;
}

/** A request in APP for one set of grants; answered by a direct get of the last message. */
export function grantsGetSubject(digest: string): string {
  return `ctl.get.${storedGrantsSubject(digest)}`;
}

/** A request in APP for many notices: a batched direct get, body `{ seq, batch, next_by_subj }`. */
export const NOTICES_GET_SUBJECT = "ctl.get.notices";

/** A request in APP for one notice; answered by a direct get of the last message. */
export function noticeGetSubject(kind: NoticeKind, id: string): string {
  return `ctl.get.${storedNoticeSubject(kind, id)}`;
}

/** The server's own subject for a direct get, of a stream or of the last message of one subject in it. */
export function directGetSubject(stream: string, subject?: string): string {
  const base = `$JS.API.DIRECT.GET.${requireToken(stream, "stream")}`;
  return subject === undefined ? base : `${base}.${subject}`;
}
