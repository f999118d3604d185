import type { ChatMessage } from '#shared/contracts/router/chat-request.ts';
import type { CallSignal } from '../../call-signal.ts';
import { fetchPictures, type PictureOptions, withPictures } from '../fetch-pictures.ts';
import type { UpstreamRequest } from '../provider.ts';
import type { SignatureCache } from './signature-cache.ts';
import { signatureDetail, signaturesIn } from './signatures.ts';

const MEDIA_TYPES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif', 'image/heic', 'image/heif']);

export interface PrepareDeps extends Pick<PictureOptions, 'getter' | 'contentAt'> {
  /** Null: there is no cache. */
  signatures: SignatureCache | null;
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
  const pictures = await fetchPictures(request.messages, signal, { getter, mediaTypes: MEDIA_TYPES, contentAt });
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
