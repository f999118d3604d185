import type { RouterCall } from '#bus/messages/router.ts';
import type { Clock } from '#shared/clock.ts';
import type { ModelConfig } from '#shared/config/router-config.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { openOutbound } from '#shared/http/outbound.ts';
import type { PlatformRouter } from '#shared/keys/platform-router.ts';
import type { CallObserver, RunDeps } from '../call/attempt.ts';
import type { Candidate } from '../call/candidates.ts';
import { type CallOutcome, runCall } from '../call/run-call.ts';
import type { CallSignal } from '../call-signal.ts';
import type { OpenedAdapter } from '../providers/provider.ts';
import { type OnServed, PLATFORM_SLUG, platformAdapter } from './platform-adapter.ts';

const CONNECT_MS = 5_000;

interface PlatformCallsDeps {
  router: PlatformRouter;
  environment: Environment;
  clock: Clock;
}

/**
 * Model calls of an agent whose platform is another deployment: sent whole to its router, as one attempt. That router reserves and bills them, under the agent's
 * key there: no record of use is written here, and what a call costs is what that router says.
 */
export class PlatformCalls {
  readonly #keyHash: string;
  readonly #name: string;
  readonly #adapter: OpenedAdapter;
  readonly #onServed = new WeakMap<ChatRequest, OnServed>();

  constructor({ router, environment, clock }: PlatformCallsDeps) {
    this.#keyHash = router.keyHash;
    this.#name = new URL(router.baseUrl).host;
    this.#adapter = platformAdapter({
      ...router,
      name: this.#name,
      connectTimeoutMs: CONNECT_MS,
      outbound: openOutbound(environment),
      clock,
      onServedOf: (request) => this.#onServed.get(request) ?? (() => {}),
    });
  }

  /** Whether calls under this key go there. @param hash of the key's secret */
  has(hash: string): boolean {
    return hash === this.#keyHash;
  }

  /** As a call that is executed here. Never rejects. */
  run(call: RouterCall, observer: CallObserver, signal: CallSignal, deps: RunDeps): Promise<CallOutcome> {
    const request = requestOf(call);
    const served = { model: request.model ?? request.models?.[0] ?? '', provider: this.#name };
    const candidate = candidateOf(request, served);
    this.#onServed.set(request, ({ model, provider }) => {
      served.model = model ?? served.model;
      served.provider = provider ?? served.provider;
    });
    const plan = { candidates: [candidate], partTransforms: [] };
    return runCall(plan, observer, signal, { ...deps, adapters: new Map([[PLATFORM_SLUG, this.#adapter]]) });
  }

  close(): Promise<void> {
    return this.#adapter.close();
  }
}

/** A new object for each call, by which its answer finds it. */
function requestOf({ request, maxTokens }: RouterCall): ChatRequest {
  if (maxTokens === null) return { ...request };
  const { max_tokens: given, max_completion_tokens: newer, ...rest } = request;
  return { ...rest, max_completion_tokens: Math.min(newer ?? given ?? maxTokens, maxTokens) };
}

function candidateOf(request: ChatRequest, served: { model: string; provider: string }): Candidate {
  const upstreamModel = served.model;
  const endpoint = { provider: PLATFORM_SLUG, upstream_model: upstreamModel };
  const model: ModelConfig = {
    get id() {
      return served.model;
    },
    description: '',
    aliases: [],
    endpoints: [endpoint],
  };
  const provider = {
    slug: PLATFORM_SLUG,
    get name() {
      return served.provider;
    },
  };
  return { id: `${upstreamModel}@${PLATFORM_SLUG}`, model, endpoint, provider, request, vectors: null };
}
