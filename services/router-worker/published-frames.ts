import { z } from 'zod';
import type { TokenStream } from '#bus/bus.ts';
import { EventTemplate } from '#bus/messages/event-template.ts';
import { type Frame, readFrame } from '#bus/messages/frame.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import type { ProviderUsage } from '#shared/contracts/router/provider-part.ts';
import { jsonIn } from '#shared/json-in.ts';
import { type Answer, addPart, emptyAnswer } from '#shared/surfaces/answer.ts';
import { dataIn } from '#shared/surfaces/parts/text-in.ts';
import type { Surface } from '#shared/surfaces/surface.ts';

/** What readers saw of earlier deliveries of a client's call. `end`: its terminal frame. */
export type Published = { kind: 'nothing' } | { kind: 'content' | 'end'; shown: Shown };

export interface Shown {
  /** Of the content that is still retained. Its usage is that of the terminal frame. */
  answer: Answer;
  /** As events name them; null when none does. */
  model: string | null;
  providerName: string | null;
  /** In US dollars, of the terminal frame; null when it has none. */
  cost: number | null;
}

const head = z.object({ model: z.string(), provider: z.string() });
const count = z.number().int().min(0);
const stated = z.object({
  usage: z.object({
    prompt_tokens: count,
    /** Absent from answers that are vectors. */
    completion_tokens: count.default(0),
    prompt_tokens_details: z.object({ cached_tokens: count, cache_write_tokens: count.optional() }).optional(),
    completion_tokens_details: z.object({ reasoning_tokens: count }).optional(),
    cost: z.number().min(0).optional(),
  }),
});

interface PublishedCall {
  call: RouterCall;
  surface: Surface;
  framesAt: string;
}

/** @throws when the frames can't be read, so that the item is retried; after the last delivery returns `nothing` */
export async function publishedOf(
  tokens: Pick<TokenStream, 'replay'>,
  published: PublishedCall,
  { isLastDelivery }: { isLastDelivery: boolean },
): Promise<Published> {
  try {
    return publishedIn(published, await tokens.replay(published.framesAt)); // no fail point: reads
  } catch (error) {
    if (!isLastDelivery) throw error;
    return { kind: 'nothing' };
  }
}

function publishedIn({ call, surface }: PublishedCall, frames: readonly Uint8Array[]): Published {
  let kind: Published['kind'] = 'nothing';
  const shown: Shown = { answer: emptyAnswer(false), model: null, providerName: null, cost: null };
  const templates = new Map<number, EventTemplate>();
  /** Gateways pass on the content of one attempt. */
  let shownAttempt: number | null = null;
  const seen = new Set<string>();
  for (const bytes of frames) {
    const frame = readFrame(call.callId, bytes);
    if (frame === null || frame.kind === 'open' || isRepeated(frame, seen)) continue;
    if (frame.kind === 'content' || frame.kind === 'text') {
      shownAttempt ??= frame.attempt;
      if (frame.attempt !== shownAttempt) continue;
      if (kind === 'nothing') kind = 'content';
      addContent(shown, surface, eventsOf(call.callId, frame, templates));
      continue;
    }
    kind = 'end';
    const values = frame.kind === 'body' ? [jsonIn(Buffer.from(frame.body).toString('utf8'))] : dataIn(frame.sse);
    for (const value of values) addStated(shown, surface, value);
  }
  return kind === 'nothing' ? { kind } : { kind, shown };
}

function isRepeated(frame: Frame, seen: Set<string>): boolean {
  if (frame.kind === 'body') return false;
  const key = `${frame.attempt}.${frame.seq}`;
  if (seen.has(key)) return true;
  seen.add(key);
  return false;
}

/** Empty for a text whose template has expired. */
function eventsOf(callId: string, frame: Extract<Frame, { kind: 'content' | 'text' }>, templates: Map<number, EventTemplate>): Uint8Array {
  if (frame.kind === 'text') return templates.get(frame.attempt)?.eventOf(frame.seq, frame.text) ?? new Uint8Array();
  if (frame.template !== null && frame.template !== 'unstated') templates.set(frame.attempt, new EventTemplate(callId, frame.attempt, frame.template));
  return frame.sse;
}

function addContent(shown: Shown, surface: Surface, events: Uint8Array): void {
  for (const value of dataIn(events)) {
    addHead(shown, statedIn(surface, value));
    for (const part of surface.partsIn?.(value) ?? []) addPart(shown.answer, part);
  }
}

function statedIn({ statedIn: read }: Surface, value: unknown): unknown {
  return read === undefined ? value : read(value);
}

function addStated(shown: Shown, surface: Surface, value: unknown): void {
  const said = statedIn(surface, value);
  addHead(shown, said);
  const { success, data } = stated.safeParse(said);
  if (!success) return;
  const { prompt_tokens, completion_tokens, prompt_tokens_details: read, completion_tokens_details: made, cost } = data.usage;
  const usage: ProviderUsage = {
    promptTokens: prompt_tokens,
    completionTokens: completion_tokens,
    cachedTokens: read?.cached_tokens ?? 0,
    reasoningTokens: made?.reasoning_tokens ?? 0,
  };
  if (read?.cache_write_tokens !== undefined) usage.cacheWriteTokens = read.cache_write_tokens;
  shown.answer.usage = usage;
  shown.cost = cost ?? null;
}

function addHead(shown: Shown, value: unknown): void {
  // That of the content: the error of a worker that has asked no provider names another.
  if (shown.model !== null) return;
  const { data } = head.safeParse(value);
  if (data === undefined) return;
  shown.model = data.model;
  shown.providerName = data.provider;
}
