import { z } from 'zod';
import type { Bus } from '#bus/bus.ts';
import { readFrame } from '#bus/messages/frame.ts';
import { EVALUATION_CALL_PREFIX, type RouterCall } from '#bus/messages/router.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ulid } from '#shared/ids.ts';
import { jsonIn } from '#shared/json-in.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { within } from '#shared/within.ts';
import { type ModelRequestSettings, modelRequest } from './model-request.ts';

interface ModelCallsDeps {
  bus: Pick<Bus, 'work' | 'tokens' | 'onReconnect'>;
  settings: ModelCallSettings;
  clock: Clock;
  waits: ModelCallWaits;
  log: Log;
}

interface ModelCallWaits {
  /** Of a call; past it there is no answer. */
  modelCallMs: number;
  /** Then the retained frames of the call are replayed: its answer may be lost. Doubled each time. */
  modelSilenceMs: number;
  /** Until the broker confirms a subscription. */
  subscribedMs: number;
}

/** Prefixes that distinguish calls in logs: of a gateway for webhooks, and of a host for evaluations. */
const names = { webhook: { origin: 'agw', call: 'whk' }, evaluation: { origin: 'act', call: EVALUATION_CALL_PREFIX } } as const;

export interface ModelCallSettings extends ModelRequestSettings {
  /** The key of the agent's model calls, by its hash (`modelKeyOf`). */
  modelKey: string;
  /** Per call. */
  maxTokens: number;
}

export interface ModelQuestion extends Pick<RouterCall['request'], 'messages' | 'response_format'> {
  model: string;
  traceparent: string;
}

export interface TextsToEmbed {
  model: string;
  dimensions: number;
  texts: readonly string[];
  traceparent: string;
}

/** Of the surface `embeddings`, in the order of the inputs. */
const vectorList = z.object({ data: z.array(z.object({ embedding: z.string() })) });

/** Of the surface `parts`. */
const wholeAnswer = z.object({ text: z.string(), finishReason: z.string() });

const DEADLINE_GRACE_MS = 1_000;
/** Between replays of a call whose frame has not come: doubled from `modelSilenceMs`. */
const LONGEST_SILENCE_MS = 8_000;

/**
 * Model calls of this process for itself, not for an actor: queued, detached, and answered by one frame on `tok.<process>.<call>`. A frame that is lost on its
 * way, as while the broker or this process was away, is found by a replay.
 */
export class ModelCalls {
  /** This process's name as an origin of calls. */
  readonly #origin: string;
  readonly #callPrefix: string;
  readonly #deps: ModelCallsDeps;

  constructor(purpose: keyof typeof names, deps: ModelCallsDeps) {
    this.#origin = `${names[purpose].origin}-${ulid()}`;
    this.#callPrefix = names[purpose].call;
    this.#deps = deps;
  }

  /**
   * The text of the whole answer.
   * @throws the bus' errors when the call can't be queued; `router.provider_unavailable` when it failed, `router.timeout` without an answer in time
   */
  async ask({ model, traceparent, ...body }: ModelQuestion): Promise<string> {
    const { settings } = this.#deps;
    const request = modelRequest(body, { models: [model], sessionId: undefined }, settings);
    return textOf(await this.#answered({ surface: 'parts', traceparent, maxTokens: settings.maxTokens, request }));
  }

  /**
   * Vectors of texts in their order, in base64 of 32-bit floats, little endian.
   * @throws as `ask`
   */
  async embed({ model, dimensions, texts, traceparent }: TextsToEmbed): Promise<string[]> {
    const request = { model, messages: texts.map((content) => ({ role: 'user' as const, content })) };
    const embedding = { format: 'base64' as const, dimensions, inputType: null, tokens: null };
    const vectors = vectorsOf(await this.#answered({ surface: 'embeddings', traceparent, maxTokens: null, request, embedding }));
    if (vectors.length !== texts.length) throw new SwitchyardError('router.provider_unavailable', 'the call has not a vector for each text');
    return vectors;
  }

  async #answered(asked: Pick<RouterCall, 'surface' | 'traceparent' | 'maxTokens' | 'request' | 'embedding'>): Promise<Answer> {
    const { bus, clock, settings, waits } = this.#deps;
    const callId = `${this.#callPrefix}-${ulid()}`;
    const nowMs = clock.nowMs();
    const call: RouterCall = {
      v: 1,
      callId,
      origin: this.#origin,
      want: 'body',
      ...asked,
      deadlineAtMs: nowMs + waits.modelCallMs,
      createdAtMs: nowMs,
      detached: true,
      republished: false,
      keyId: settings.modelKey,
      reply: null,
    };
    const answer = this.#answerOf(callId);
    try {
      await answer.subscribed();
      const answered = bus.work.publish('router.call', callId, JSON.stringify(call)).then(() => answer.frame);
      return await within(waits.modelCallMs + DEADLINE_GRACE_MS, answered, timedOut);
    } finally {
      answer.stop();
    }
  }

  /** Follows the subject of a call until `stop`. */
  #answerOf(callId: string): { frame: Promise<Answer>; subscribed(): Promise<void>; stop(): void } {
    const { bus, waits, log } = this.#deps;
    const subject = subjectOf(addresses.tokens, this.#origin, callId);
    let resolve: (answer: Answer) => void = () => {};
    const frame = new Promise<Answer>((resolved) => {
      resolve = resolved;
    });
    const receive = (bytes: Uint8Array) => {
      const found = answerIn(callId, bytes);
      if (found !== null) resolve(found);
    };
    const replay = () => {
      bus.tokens.replay(subject).then(
        (frames) => frames.forEach(receive),
        (error: unknown) => log.warn({ err: error, call_id: callId }, 'the retained frames of a call could not be replayed'),
      );
    };
    let silence: NodeJS.Timeout;
    const replayAfter = (silenceMs: number) => {
      silence = setTimeout(() => {
        replay();
        replayAfter(Math.min(silenceMs * 2, LONGEST_SILENCE_MS));
      }, silenceMs);
    };
    const subscription = bus.tokens.subscribe(subject, (_subject, bytes) => receive(bytes));
    const reconnects = bus.onReconnect(replay);
    // Last: a bus that is closed throws above, and nothing would stop the timer.
    replayAfter(waits.modelSilenceMs);
    return {
      frame,
      subscribed: () => within(waits.subscribedMs, subscription.ready(), () => undefined),
      stop: () => {
        clearTimeout(silence);
        for (const one of [subscription, reconnects]) one.stop().catch((error: unknown) => log.warn({ err: error }, 'a subscription could not be ended'));
      },
    };
  }
}

interface Answer {
  status: number;
  body: Uint8Array;
}

/** Null: it is not the last frame. */
function answerIn(callId: string, bytes: Uint8Array): Answer | null {
  const frame = readFrame(callId, bytes);
  return frame?.kind === 'body' || frame?.kind === 'error' ? { status: frame.status, body: frame.body } : null;
}

function vectorsOf(answer: Answer): string[] {
  const read = vectorList.safeParse(jsonOf(answer));
  if (!read.success) throw new SwitchyardError('router.provider_unavailable', 'the call for vectors has none');
  return read.data.data.map(({ embedding }) => embedding);
}

/** The body of an error stays out of messages: it may quote a provider. */
function jsonOf({ status, body }: Answer): unknown {
  if (status !== 200) throw new SwitchyardError('router.provider_unavailable', `the model call failed with status ${status}`);
  return jsonIn(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8'));
}

function textOf(answer: Answer): string {
  const read = wholeAnswer.safeParse(jsonOf(answer));
  if (!read.success || read.data.finishReason === 'error') throw new SwitchyardError('router.provider_unavailable', 'the model call has no whole answer');
  return read.data.text;
}

function timedOut(): never {
  throw new SwitchyardError('router.timeout', 'the model call was not answered in time');
}
