import type { ChatMessage } from '#shared/contracts/router/chat-request.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { GuardedGetter } from '#shared/http/guarded-get.ts';
import type { CallSignal } from '../call-signal.ts';

/** Of one call: more are refused. */
const MAX_PICTURES = 16;
/** Of all pictures of a call, with the limits of each below them. */
const MAX_PICTURE_BYTES = 20 * 1024 * 1024;
const PICTURES_TIMEOUT_MS = 10_000;
const WEB_URL = /^https?:\/\//i;

export interface PictureOptions {
  getter: Pick<GuardedGetter, 'get'>;
  /** Of pictures that the API takes. */
  mediaTypes: ReadonlySet<string>;
  /** The path of a message's content in the caller's request, for refusals; absent: that of a chat. */
  contentAt?: ((index: number) => string) | undefined;
}

/**
 * Pictures by address as data URLs, for APIs that take bytes. One after the other: a call holds the bytes of all.
 *
 * @returns by address; empty where there are none
 * @throws `router.provider_refused` naming a picture that could not be fetched; the signal's reason
 */
export async function fetchPictures(
  messages: readonly ChatMessage[],
  signal: CallSignal,
  { getter, mediaTypes, contentAt = (index) => `messages[${index}].content` }: PictureOptions,
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
      const get = getter.get({ url, mediaTypes, maxBytes: leftBytes, timeoutMs, signal: controller.signal });
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

/** A message with data URLs in place of addresses. */
export function withPictures(message: ChatMessage, pictures: ReadonlyMap<string, string>): ChatMessage {
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
