import { createHash } from 'node:crypto';
import type { RouterCall } from '#bus/messages/router.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { type Catalogue, namedModels } from './candidates.ts';
import type { ModelEndpoint } from './model-endpoint.ts';

/** What makes calls one conversation: a session, a key of the caller's prompt cache, or how the conversation begins. */
type Basis = 'session' | 'cache-key' | 'begin';

/** A call whose endpoint may be that of the calls before it. */
export class Conversation {
  /** Of all models that the call names. */
  readonly endpoints: readonly ModelEndpoint[];
  readonly #scope: readonly string[];
  readonly #basis: Basis;
  readonly #request: ChatRequest;
  readonly #sessionId: string | null;
  #key: string | null = null;

  constructor(scope: readonly string[], request: ChatRequest, sessionId: string | null, endpoints: readonly ModelEndpoint[]) {
    this.endpoints = endpoints;
    this.#scope = scope;
    this.#request = request;
    this.#sessionId = sessionId;
    this.#basis = sessionId !== null ? 'session' : request.prompt_cache_key ? 'cache-key' : 'begin';
  }

  get hasSession(): boolean {
    return this.#basis === 'session';
  }

  /** A hash, computed when it is needed: prompts are long. */
  get key(): string {
    this.#key ??= createHash('sha256')
      .update(JSON.stringify([...this.#scope, this.#basis, this.#content()]))
      .digest('base64url')
      .slice(0, 32);
    return this.#key;
  }

  #content(): unknown {
    if (this.#basis === 'session') return this.#sessionId;
    if (this.#basis === 'cache-key') return this.#request.prompt_cache_key;
    const { messages } = this.#request;
    const isInstruction = ({ role }: ChatRequest['messages'][number]) => role === 'system' || role === 'developer';
    return [messages.find(isInstruction)?.content ?? null, messages.find((message) => !isInstruction(message))?.content ?? null];
  }
}

/** Null: the call goes where it goes without regard to those before it, because it states an order, has vectors, or has no choice of endpoints. */
export function conversationOf({ keyId, embedding, reply }: RouterCall, request: ChatRequest, catalogue: Catalogue): Conversation | null {
  const { provider, route } = request;
  if (embedding !== undefined || route === 'sort' || provider?.sort || (provider?.order?.length ?? 0) > 0) return null;
  const models = namedModels(request, catalogue);
  const [model] = models;
  if (model === undefined) return null;
  const endpoints = models.flatMap((one) => catalogue.modelEndpoints.get(one) ?? []);
  if (endpoints.length < 2) return null;
  return new Conversation([keyId, model.id], request, request.session_id ?? reply?.sessionId ?? null, endpoints);
}
