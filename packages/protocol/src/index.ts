export { UnexpectedError } from "@trellis/result";
export {
  type BootstrapAnswer,
  BootstrapAnswerSchema,
  type Transports,
  TransportsSchema,
  type WellKnown,
  WellKnownSchema,
} from "./bootstrap/answer.ts";
export {
  DENIAL_CODES,
  type Denial,
  type DenialCode,
  DenialSchema,
  isDenialCode,
  isFinalDenial,
} from "./bootstrap/denial.ts";
export { BOOTSTRAP_PATHS } from "./bootstrap/paths.ts";
export {
  type BootstrapRequest,
  BootstrapRequestSchema,
  type RefreshRequest,
  RefreshRequestSchema,
} from "./bootstrap/request.ts";
export { fromBase64Url, toBase64Url } from "./bytes/base64url.ts";
export { concatBytes } from "./bytes/concat.ts";
export { fromHex, toHex } from "./bytes/hex.ts";
export { transcript } from "./bytes/transcript.ts";
export { utf8Bytes, utf8Text } from "./bytes/utf8.ts";
export { connectToken, isNonce, parseUserName, userName } from "./connect/user-name.ts";
export { AUTH_REASONS, AuthError, type AuthReason } from "./errors/auth-error.ts";
export { CallError, type CallErrorOptions } from "./errors/call-error.ts";
export { type DeclaredErrors, decodeError } from "./errors/decode-error.ts";
export { encodeError, encodeErrorText } from "./errors/encode-error.ts";
export type { ErrorEnvelope } from "./errors/envelope.ts";
export { FeedError, type FeedErrorReason } from "./errors/feed-error.ts";
export { KVError, type KVErrorReason } from "./errors/kv-error.ts";
export {
  ConflictError,
  NotFoundError,
  UnavailableError,
  type UnavailableReason,
} from "./errors/presence-errors.ts";
export { RemoteError } from "./errors/remote-error.ts";
export { StoreError, type StoreErrorReason } from "./errors/store-error.ts";
export { BusyError, CancelledError, type CancelReason, TimeoutError } from "./errors/timing-errors.ts";
export { TransportError } from "./errors/transport-error.ts";
export type { CallErrors, TrellisError } from "./errors/trellis-error.ts";
export { ValidationError } from "./errors/validation-error.ts";
export {
  DEAD_LETTER_HEADERS,
  type DeadLetter,
  type DeadReason,
  deadLetterSubject,
  REPLAY_HEADERS,
  readDeadLetter,
  replaySubject,
  writeDeadLetter,
} from "./events/dead-letter.ts";
export {
  EVENT_HEADERS,
  type EventHeadersReading,
  type EventStamp,
  isEventId,
  isTraceState,
  readEventHeaders,
  writeEventHeaders,
} from "./events/event-headers.ts";
export {
  EVENT_CONTENT_LABEL,
  EVENT_LABEL,
  type EventContent,
  type EventFacts,
  eventContent,
  eventLeaf,
  eventMessageId,
} from "./events/event-leaf.ts";
export {
  type EventAddress,
  type EventPlace,
  eventParamText,
  eventPlace,
  MAX_EVENT_PARAM,
  type ParamText,
  readEventSubject,
} from "./events/event-params.ts";
export {
  EVENT_ROOT_LABEL,
  type EventProof,
  eventRootBytes,
  type ProofPlace,
  readEventProof,
  readProofPlace,
  readWhole,
  type SignEventsInput,
  type SignedTree,
  signEvents,
} from "./events/event-proof.ts";
export { EventTree } from "./events/event-tree.ts";
export {
  EVENT_CLOCK_LEEWAY_MS,
  EVENT_REFUSALS,
  type EventPublisher,
  type EventRefusal,
  eventRoot,
  refuseEvent,
  type StoredEvent,
} from "./events/event-verdict.ts";
export {
  EVENT_NODE_LABEL,
  MAX_MERKLE_LEAVES,
  type MerkleProof,
  type MerkleTree,
  merklePath,
  merklePathLength,
  merkleRoot,
  merkleTree,
} from "./events/merkle.ts";
export { isPreparedEvent, type PreparedEvent, PreparedEventSchema } from "./events/prepared-event.ts";
export {
  decodeFeedChallenge,
  encodeFeedChallenge,
  type FeedChallenge,
  type FeedChallengeInput,
  type FeedChallengeKind,
  verifyFeedChallenge,
} from "./feeds/feed-challenge.ts";
export {
  decodeFeedControl,
  encodeFeedControl,
  FEED_NOTE_KINDS,
  type FeedControlFrame,
  type FeedControlInput,
  type FeedNote,
  type FeedNoteKind,
  isFeedControl,
  verifyFeedControl,
} from "./feeds/feed-control.ts";
export { FEED_END_REASONS, type FeedEndReason } from "./feeds/feed-end.ts";
export {
  decodeFeedFrame,
  encodeFeedEnd,
  encodeFeedItems,
  FEED_ITEMS_OVERHEAD,
  type FeedEndFrame,
  type FeedEndInput,
  type FeedFrame,
  type FeedFramePlace,
  type FeedItemsFrame,
  type FeedItemsInput,
  verifyFeedFrame,
} from "./feeds/feed-frame.ts";
export { deriveFeedKey } from "./feeds/feed-key.ts";
export { MAX_FEED_ITEMS, MAX_FRAME_SESSIONS } from "./feeds/feed-layout.ts";
export {
  type FeedOpened,
  FeedOpenedSchema,
  type FeedOpening,
  readFeedOpening,
} from "./feeds/feed-opening.ts";
export {
  FeedReceiver,
  type FeedReceiverDue,
  type FeedReceiverVerdict,
  type FeedReport,
} from "./feeds/feed-receiver.ts";
export {
  FeedSender,
  type FeedSenderDecision,
  type FeedSenderDue,
  type FeedSenderPhase,
} from "./feeds/feed-sender.ts";
export { FEED_TIMING, FEED_WINDOW } from "./feeds/feed-window.ts";
export {
  CONTROL_KINDS,
  CONTROL_LABEL,
  type ControlFrame,
  type ControlFrameInput,
  type ControlKind,
  decodeControlFrame,
  encodeControlFrame,
  readControlHeader,
  verifyControlFrame,
} from "./frames/control.ts";
export {
  type DecodedHeader,
  type FrameHeader,
  MAX_CONTROL_IDS,
  MAX_FRAME_CALLS,
} from "./frames/header.ts";
export { deriveRpcKeys, type RpcKeys } from "./frames/keys.ts";
export { encodeReceipt, type Receipt, readReceipt } from "./frames/receipt.ts";
export { ReplayWindow } from "./frames/replay-window.ts";
export {
  type DecodedResult,
  decodeReplyFrame,
  encodeRefusal,
  encodeReplyFrame,
  REFUSAL_CODES,
  REPLY_LABEL,
  REPLY_OVERHEAD,
  RESULT_OVERHEAD,
  RESULT_STATUS,
  type RefusalCode,
  type RefusalFrame,
  type ReplyFrame,
  type ReplyFrameInput,
  type ResultItem,
  type ResultStatus,
  verifyReplyFrame,
} from "./frames/reply.ts";
export {
  type CallItem,
  callLength,
  type DecodedCall,
  decodeRequestFrame,
  encodeRequestFrame,
  REQUEST_LABEL,
  REQUEST_OVERHEAD,
  type RequestFrame,
  type RequestFrameInput,
  readRequestHeader,
  TRACE_LENGTH,
  verifyRequestFrame,
} from "./frames/request.ts";
export {
  HEARTBEAT_LABEL,
  type HealthCheck,
  HealthCheckSchema,
  type Heartbeat,
  HeartbeatSchema,
  signHeartbeat,
  verifyHeartbeat,
} from "./health/heartbeat.ts";
export { isId, newId } from "./ids/ulid.ts";
export { JobNotEnqueuedError, type JobNotEnqueuedReason } from "./jobs/job-not-enqueued-error.ts";
export {
  decodeJson,
  decodeJsonBytes,
  decodeJsonList,
  type JsonDecoding,
  type JsonListDecoding,
} from "./json/decode.ts";
export { encodeJson, type JsonEncoding } from "./json/encode.ts";
export { type JsonIssue, MAX_JSON_DEPTH } from "./json/issue.ts";
export {
  KV_DELETED,
  KV_MARKER_HEADER,
  KV_OPERATION_HEADER,
  KV_VERSION_HEADER,
  KV_WRITE_HEADER,
  type KvEntryHeaders,
  type KvEntryKind,
  kvEntryKind,
} from "./kv/kv-entry.ts";
export {
  decodeKvKey,
  encodeKvKey,
  kvKeyProblem,
  kvPrefixFilter,
  MAX_KV_KEY_LENGTH,
} from "./kv/kv-key.ts";
export { kvPrefix, kvStreamName, kvWatchPrefix } from "./kv/kv-subject.ts";
export type {
  DeriveInput,
  ExchangeKey,
  HashStream,
  MacKey,
  Port,
  SealInput,
  SigningKey,
} from "./port/port.ts";
export {
  HTTP_PROOF_LABEL,
  type HttpProofClaims,
  httpProof,
  IDENTITY_PROOF_HEADER,
  PROOF_PURPOSES,
  type ProofPurpose,
  SESSION_PROOF_HEADER,
  verifyHttpProof,
} from "./proof/http-proof.ts";
export {
  type ConsumerBinding,
  ConsumerBindingSchema,
  type KvBinding,
  KvBindingSchema,
  RESOURCES,
  type ResourceBindings,
  type StoreBinding,
  StoreBindingSchema,
} from "./resources/resource-bindings.ts";
export {
  deadLetterPrefix,
  deadLetterStream,
  EVENT_STREAM,
  listenerName,
  resourceName,
} from "./resources/resource-names.ts";
export {
  AUTHORIZATION,
  type Authorization,
  type AuthorizationExpectation,
  AuthorizationSchema,
  authorizationDigest,
  checkAuthorization,
  PRINCIPAL_KINDS,
} from "./statements/authorization.ts";
export {
  type GrantedSurface,
  type GrantQuestion,
  type Grants,
  GrantsSchema,
  grantsDigest,
  isGranted,
} from "./statements/grants.ts";
export {
  ISSUERS_LABEL,
  type Issuer,
  type IssuerSet,
  type Issuers,
  IssuersSchema,
  type VerifyIssuersInput,
  verifyIssuers,
} from "./statements/issuers.ts";
export { keyId, rootFingerprint } from "./statements/keys.ts";
export {
  CONNECTION_END,
  type ConnectionEnd,
  ConnectionEndSchema,
  REVOCATION,
  REVOCATION_SUBJECTS,
  type Revocation,
  RevocationSchema,
  revocableIds,
  revokes,
} from "./statements/notices.ts";
export {
  API_BINDING,
  type ApiBinding,
  ApiBindingSchema,
  ROUTE_NOTICE,
  type RouteNotice,
  RouteNoticeSchema,
} from "./statements/routes.ts";
export {
  type OpenRouteKeyInput,
  openRouteKey,
  type SealedRouteKey,
  SealedRouteKeySchema,
  type SealRouteKeyInput,
  sealRouteKey,
} from "./statements/sealed-route-key.ts";
export { type Signed, SignedSchema, signStatement } from "./statements/signed.ts";
export {
  type StatementKind,
  type VerifyStatementInput,
  verifyStatement,
} from "./statements/verify-statement.ts";
export { safeFileName } from "./store/file-name.ts";
export { decodeListCursor, encodeListCursor } from "./store/list-cursor.ts";
export { decodeObjectDigest, encodeObjectDigest } from "./store/object-digest.ts";
export { decodeObjectMeta, encodeObjectMeta, type ObjectLink, type ObjectMeta } from "./store/object-meta.ts";
export {
  decodeStoreKey,
  encodeStoreKey,
  MAX_STORE_KEY_BYTES,
  storeChunkPrefix,
  storeKeyProblem,
  storeMetaPrefix,
  storeStreamName,
  storeWatchPrefix,
} from "./store/store-key.ts";
export {
  AUTHORIZATION_STREAM,
  authorizationGetSubject,
  directGetSubject,
  grantsGetSubject,
  NOTICE_FILTER,
  NOTICE_KINDS,
  NOTICE_STREAM,
  NOTICES_GET_SUBJECT,
  type NoticeKind,
  noticeGetSubject,
  noticeSubject,
  revocationNoticeId,
  storedAuthorizationSubject,
  storedGrantsSubject,
  storedNoticeSubject,
} from "./subjects/control-account.ts";
export {
  type ActionAddress,
  controlSubject,
  eventFilter,
  eventSubject,
  feedSubject,
  healthSubject,
  inboxPrefix,
  jetStreamReplySubject,
  operationSubject,
  replySubject,
  rpcSubject,
} from "./subjects/subject.ts";
export {
  actionOfToken,
  actionToken,
  apiOfToken,
  apiToken,
  decodeToken,
  encodeToken,
  idToken,
  isEncodable,
  isToken,
} from "./subjects/token.ts";
