import type { RouterCall } from '#bus/messages/router.ts';
import { withDefaultPlugins } from '#shared/config/default-plugins.ts';
import { withSuffixEffects } from '#shared/config/suffix-effects.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { StagedCall } from '../pipeline/stage.ts';
import { type Catalogue, type Choice, candidatesFor } from './candidates.ts';
import type { HealthView } from './health-view.ts';

/** What is decided about: the request as it came, or as its stages have left it. */
export type Decided = Pick<StagedCall, 'request'> & Partial<Pick<StagedCall, 'isSearchNative' | 'hasUnreadFiles'>>;

/** With what the names of its models and the account's rules ask for. A call for vectors has those of the account's plugins that have a meaning for it. */
export function askedOf({ request, embedding, keyId }: RouterCall, { names, rules }: Catalogue): ChatRequest {
  const use = embedding === undefined ? 'chat' : 'vectors';
  return withDefaultPlugins(withSuffixEffects(request, use, names), rules.of(keyId).plugins, use);
}

/** @param stickyTo the endpoint that served the conversation last; null: none @throws as `candidatesFor` */
export function choiceOf(
  { request, isSearchNative = false, hasUnreadFiles = false }: Decided,
  stickyTo: string | null,
  { maxTokens, reserved, embedding, keyId, callId }: RouterCall,
  { catalogue, health }: { catalogue: Catalogue; health: HealthView },
): Choice {
  return candidatesFor(
    { request, maxTokens, reserved, embedding, isSearchNative, hasUnreadFiles },
    { catalogue, rules: catalogue.rules.of(keyId), health, stickyTo, seed: callId },
  );
}
