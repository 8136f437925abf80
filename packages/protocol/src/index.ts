export { fromBase64Url, toBase64Url } from "./bytes/base64url.ts";
export { concatBytes } from "./bytes/concat.ts";
export { fromHex, toHex } from "./bytes/hex.ts";
export { transcript } from "./bytes/transcript.ts";
export { utf8Bytes, utf8Text } from "./bytes/utf8.ts";
export {
  CONTROL_KINDS,
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
export { ReplayWindow } from "./frames/replay-window.ts";
export {
  type DecodedResult,
  decodeReplyFrame,
  encodeRefusal,
  encodeReplyFrame,
  REFUSAL_CODES,
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
  REQUEST_OVERHEAD,
  type RequestFrame,
  type RequestFrameInput,
  readRequestHeader,
  TRACE_LENGTH,
  verifyRequestFrame,
} from "./frames/request.ts";
export { isId, newId } from "./ids/ulid.ts";
export type { DeriveInput, ExchangeKey, MacKey, Port, SealInput, SigningKey } from "./port/port.ts";
export { portablePort } from "./port/portable.ts";
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
