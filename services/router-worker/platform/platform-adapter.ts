import { z } from 'zod';
import type { Clock } from '#shared/clock.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { ProviderPart, ProviderUsage } from '#shared/contracts/router/provider-part.ts';
import { nanoOfUsd } from '#shared/credit/nano-usd.ts';
import { type ErrorCode, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Outbound } from '#shared/http/outbound.ts';
import type { SseEvent } from '#shared/http/sse-reader.ts';
import type { PlatformRouter } from '#shared/keys/platform-router.ts';
import { sseAnswer } from '../providers/http-stream/parts-of-body.ts';
import { type HttpDialect, httpStream } from '../providers/http-stream.ts';
import { describeErrorOf } from '../providers/openai-compatible/describe-error.ts';
import { PartReader } from '../providers/openai-compatible/to-parts.ts';
import type { OpenedAdapter } from '../providers/provider.ts';

/** The model and the provider that an answer of the platform names. */
export type OnServed = (served: { model: string | null; provider: string | null }) => void;

export const PLATFORM_SLUG = 'platform';

/** In US dollars. */
const billedUsage = z.object({ usage: z.object({ cost: z.number().min(0) }) });

interface PlatformAdapterOptions extends PlatformRouter {
  name: string;
  connectTimeoutMs: number;
  outbound: Outbound;
  clock: Clock;
  /** Of a request. */
  onServedOf(request: ChatRequest): OnServed;
}

/** Sends requests as they are to the router of another deployment: its candidates, plugins and fallbacks decide. */
export function platformAdapter({ baseUrl, apiKey, name, onServedOf, ...options }: PlatformAdapterOptions): OpenedAdapter {
  const dialect: HttpDialect = {
    requestFor({ request }) {
      const onServed = onServedOf(request);
      return {
        path: '/chat/completions',
        headers: { authorization: `Bearer ${apiKey}` },
        body: { ...request, stream: true, stream_options: { include_usage: true } },
        readerFor: (contentType) => sseAnswer(new NamedAnswer(onServed), contentType),
      };
    },
    describeError: describeErrorOf(null),
  };
  const adapter = httpStream({ ...options, slug: PLATFORM_SLUG, name, baseUrl: `${baseUrl}/api/v1`, apiKey, dialect });
  return {
    ...adapter,
    stream: async (...call) => {
      try {
        await adapter.stream(...call);
      } catch (error) {
        throw asAtHome(error);
      }
    },
  };
}

/** Also reads which model and provider have answered, which each chunk of a router says, and what its answer costs, which the one with the usage says. */
class NamedAnswer extends PartReader {
  #onServed: OnServed | null;

  constructor(onServed: OnServed) {
    super(false);
    this.#onServed = onServed;
  }

  override readEvents(events: readonly SseEvent[]): ProviderPart[] {
    if (this.#onServed !== null) for (const { data } of events) this.#name(data);
    const parts = super.readEvents(events);
    for (const part of parts) if (part.type === 'usage') addCost(part.usage, events);
    return parts;
  }

  #name(data: string): void {
    const served = servedIn(data);
    if (served === null) return;
    this.#onServed?.(served);
    this.#onServed = null;
  }
}

function servedIn(data: string): Parameters<OnServed>[0] | null {
  const chunk = objectIn(data);
  if (chunk === null || !('choices' in chunk)) return null;
  return { model: textIn(chunk, 'model'), provider: textIn(chunk, 'provider') };
}

/** The last one counts, as with the usage itself. */
function addCost(usage: ProviderUsage, events: readonly SseEvent[]): void {
  for (const { data } of events) {
    const billed = data.includes('"cost"') ? billedUsage.safeParse(objectIn(data)).data : undefined;
    if (billed !== undefined) usage.billedNano = nanoOfUsd(billed.usage.cost);
  }
}

function objectIn(data: string): object | null {
  try {
    const value: unknown = JSON.parse(data);
    return typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
}

function textIn(chunk: object, name: string): string | null {
  const value: unknown = Reflect.get(chunk, name);
  return typeof value === 'string' && value !== '' ? value : null;
}

/** What the platform's status says of the agent's key and request, where that of a provider would say something of our configuration. */
const CODES: Readonly<Record<number, ErrorCode>> = {
  401: 'router.key_refused',
  402: 'router.payment_required',
  403: 'router.key_refused',
  408: 'router.timeout',
};

/** A refusal as it is where the call is executed here. */
function asAtHome(error: unknown): unknown {
  if (!(error instanceof SwitchyardError)) return error;
  const { code, details, message } = error;
  const isMeant = code === 'router.provider_misconfigured' || code === 'router.provider_unavailable' || code === 'router.provider_refused';
  if (!isMeant || typeof details.status !== 'number') return error;
  const meant = /is not a valid model ID/.test(message) ? 'router.model_unknown' : CODES[details.status];
  return meant === undefined ? error : new SwitchyardError(meant, message, { cause: error, details });
}
