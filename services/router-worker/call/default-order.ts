import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { messagesBeyondText } from '#shared/prompts/deferred-messages.ts';
import type { RankedEndpoint, Strategy } from './decision.ts';
import { SeededDraw } from './draw.ts';
import { expectedPrice, type TokenMix } from './expected-price.ts';
import type { EndpointHealth, HealthView } from './health-view.ts';
import type { ModelEndpoint } from './model-endpoint.ts';
import { slowFor } from './preferred-speed.ts';

/** What the order depends on beside the endpoints. */
export interface OrderInputs {
  request: Pick<ChatRequest, 'provider' | 'route' | 'messages'>;
  health: HealthView;
  /** Null: none. */
  stickyTo: string | null;
  seed: string;
  /** Called once at most, when prices decide. */
  mix(): TokenMix;
}

/** Of two endpoints the one with the lower first different key is first. */
export interface Rank {
  keys: readonly number[];
  listed: RankedEndpoint;
}

/** How many of the keys below count before the order of models, where a request sorts across models. */
export const DECISIVE = 3;

/** Free endpoints, then priced ones, then those of unknown price. */
type PriceClass = 0 | 1 | 2;

/**
 * The order of requests that state none: healthy endpoints, then those with an outage, then those that would fail; among these the endpoint that served the
 * conversation last, those that are quick enough, those that read the reasoning sent back; then the draw.
 */
export class DefaultOrder {
  readonly #inputs: OrderInputs;
  readonly #isSlow: (health: EndpointHealth) => boolean;
  readonly #readsReasoning: (modelEndpoint: ModelEndpoint) => boolean;
  #draw: SeededDraw | null = null;
  #mix: TokenMix | null = null;

  constructor(inputs: OrderInputs) {
    this.#inputs = inputs;
    this.#isSlow = slowFor(inputs.request.provider);
    this.#readsReasoning = readsReasoningOf(messagesBeyondText(inputs.request));
  }

  /** Null: nothing was drawn. */
  get seed(): string | null {
    return this.#draw === null ? null : this.#inputs.seed;
  }

  rankOf(modelEndpoint: ModelEndpoint): Rank {
    const health = this.#inputs.health.of(modelEndpoint);
    const isSticky = modelEndpoint.id === this.#inputs.stickyTo;
    const isSlow = this.#isSlow(health);
    const { price, weight, priceClass, key } = this.#drawn(modelEndpoint);
    const listed: RankedEndpoint = { endpoint: modelEndpoint.id, health: healthNameOf(health), price, weight };
    if (isSticky) listed.sticky = true;
    if (isSlow) listed.slow = true;
    return {
      listed,
      keys: [health.isOpen ? 2 : health.isHealthy ? 0 : 1, isSticky ? 0 : 1, isSlow ? 1 : 0, this.#readsReasoning(modelEndpoint) ? 0 : 1, priceClass, key],
    };
  }

  strategyOf = ({ sticky, weight }: RankedEndpoint): Strategy => (sticky === true ? 'sticky' : weight === null ? 'configured' : 'weighted');

  /** Equal keys keep the configuration's order. */
  #drawn({ id, model, prices }: ModelEndpoint): { price: number | null; weight: number | null; priceClass: PriceClass; key: number } {
    if (model.order === 'file') return { price: null, weight: null, priceClass: 0, key: 0 };
    if (prices === null) return { price: null, weight: null, priceClass: 2, key: 0 };
    this.#mix ??= this.#inputs.mix();
    this.#draw ??= new SeededDraw(this.#inputs.seed);
    const price = expectedPrice(prices, this.#mix);
    const weight = price === 0 ? 1 : 1 / price ** 2;
    return { price, weight, priceClass: price === 0 ? 0 : 1, key: this.#draw.keyOf(id, weight) };
  }
}

/** Reasoning is lost at an endpoint of another dialect. */
function readsReasoningOf(messages: ChatRequest['messages']): (modelEndpoint: ModelEndpoint) => boolean {
  const formats = reasoningFormats(messages);
  return ({ provider: { reasoningFormat: format } }) => format !== null && formats.has(format);
}

function reasoningFormats(messages: ChatRequest['messages']): ReadonlySet<unknown> {
  const formats = new Set<unknown>();
  for (const message of messages) {
    const details = message.role === 'assistant' ? message.reasoning_details : null;
    for (const detail of Array.isArray(details) ? details : []) formats.add(detail?.format);
  }
  return formats;
}

export function healthNameOf({ isHealthy, isOpen }: EndpointHealth): RankedEndpoint['health'] {
  return isOpen ? 'open' : isHealthy ? 'healthy' : 'unhealthy';
}
