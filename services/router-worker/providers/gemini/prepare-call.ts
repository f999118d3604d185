import type { ChatMessage } from '#shared/contracts/router/chat-request.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { GuardedGetter } from '#shared/http/guarded-get.ts';
import type { CallSignal } from '../../call-signal.ts';
import type { UpstreamRequest } from '../provider.ts';
import type { SignatureCache } from './signature-cache.ts';
import { signatureDetail, signaturesIn } from './signatures.ts';

/** Of one call: more are refused. */
const MAX_PICTURES = 16;
/** Of all pictures of a call, with the limits of each below them. */
const MAX_PICTURE_BYTES = 20 * 1024 * 1024;
const PICTURES_TIMEOUT_MS = 10_000;
const MEDIA_TYPES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif', 'image/heic', 'image/heif']);
const WEB_URL = /^https?:\/\//i;

export interface PrepareDeps {
  getter: Pick<GuardedGetter, 'get'>;
  /** Null: there is no cache. */
  signatures: SignatureCache | null;
  /** The path of a message's content in the caller's request, for refusals; absent: that of a chat. */
  contentAt?: ((index: number) => string) | undefined;
}

/**
 * Adds the signatures that the client dropped, and fetches pictures by address, since the API takes bytes. Returns the call itself where there is neither.
 *
 * @throws `router.provider_refused` naming a picture that could not be fetched; the signal's reason
 */
export async function prepareCall(call: UpstreamRequest, signal: CallSignal, { getter, signatures, contentAt }: PrepareDeps): Promise<UpstreamRequest> {
  const { request } = call;
  const missing = signatures === null ? [] : request.messages.flatMap(callsWithoutSignature);
  const found = signatures === null || missing.length === 0 ? new Map<string, string>() : await signatures.find(missing);
  signal.throwIfAborted();
  const pictures = await fetchPictures(request.messages, signal, { getter, contentAt });
  if (found.size === 0 && pictures.size === 0) return call;
  const messages = request.messages.map((message) => withPictures(withSignatures(message, found), pictures));
  return { ...call, request: { ...request, messages } };
}

function callsWithoutSignature(message: ChatMessage): string[] {
  if (message.role !== 'assistant') return [];
  const { ofCalls } = signaturesIn(message.reasoning_details);
  const ids = (message.tool_calls ?? []).map(({ id }) => id);
  // Of parallel calls the first alone is signed.
  return ids.some((id) => ofCalls.has(id)) ? [] : ids;
}

function withSignatures(message: ChatMessage, found: ReadonlyMap<string, string>): ChatMessage {
  if (message.role !== 'assistant') return message;
  const added = (message.tool_calls ?? []).flatMap(({ id }) => {
    const signature = found.get(id);
    return signature === undefined ? [] : [signatureDetail(id, signature)];
  });
  if (added.length === 0) return message;
  const given = Array.isArray(message.reasoning_details) ? message.reasoning_details : [];
  return { ...message, reasoning_details: [...given, ...added] };
}

/** Data URLs by address. One after the other: a call holds the bytes of all. */
async function fetchPictures(
  messages: readonly ChatMessage[],
  signal: CallSignal,
  { getter, contentAt = (index) => `messages[${index}].content` }: Pick<PrepareDeps, 'getter' | 'contentAt'>,
): Promise<ReadonlyMap<string, string>> {
  const wanted = new Map(
    messages.flatMap(({ content }, index) => pictureUrls(content).map(([url, item]) => [url, `${contentAt(index)}[${item}].image_url.url`])),
  );
  const pictures = new Map<string, string>();
  if (wanted.size === 0) return pictures;
  const controller = new AbortController();
  const onAbort = () => controller.abort(signal.reason);
  signal.addEventListener('abort', onAbort);
  const untilMs = performance.now() + PICTURES_TIMEOUT_MS;
  let leftBytes = MAX_PICTURE_BYTES;
  try {
    for (const [url, path] of wanted) {
      if (pictures.size >= MAX_PICTURES) throw refusal(path, `a request may have at most ${MAX_PICTURES} pictures by address`);
      const timeoutMs = Math.max(1, untilMs - performance.now());
      const get = getter.get({ url, mediaTypes: MEDIA_TYPES, maxBytes: leftBytes, timeoutMs, signal: controller.signal });
      const { mediaType, bytes } = await get.catch((error: unknown) => {
        if (signal.aborted) throw signal.reason;
        throw refusal(path, error instanceof SwitchyardError ? error.message : 'the picture could not be fetched', error);
      });
      leftBytes -= bytes.byteLength;
      pictures.set(url, `data:${mediaType};base64,${bytes.toString('base64')}`);
    }
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
  return pictures;
}

function pictureUrls(content: ChatMessage['content']): [url: string, item: number][] {
  if (typeof content === 'string') return [];
  return (content ?? []).flatMap((item, index): [string, number][] =>
    item.type === 'image_url' && WEB_URL.test(item.image_url.url) ? [[item.image_url.url, index]] : [],
  );
}

function withPictures(message: ChatMessage, pictures: ReadonlyMap<string, string>): ChatMessage {
  if (pictureUrls(message.content).length === 0 || typeof message.content === 'string') return message;
  const content = (message.content ?? []).map((item) => {
    const url = item.type === 'image_url' ? pictures.get(item.image_url.url) : undefined;
    return item.type === 'image_url' && url !== undefined ? { ...item, image_url: { ...item.image_url, url } } : item;
  });
  return { ...message, content } as ChatMessage;
}

function refusal(param: string, words: string, cause?: unknown): SwitchyardError {
  return new SwitchyardError('router.provider_refused', `${param}: ${words}`, { cause, details: { param } });
}
