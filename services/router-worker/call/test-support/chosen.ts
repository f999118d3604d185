import { accountRulesOf } from '#shared/config/account-rules.ts';
import type { RouterConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { configuredProviders } from '../../providers/registry.ts';
import { type Candidate, type Choice, type Circumstances, candidatesFor, catalogueOf } from '../candidates.ts';
import { noProvider } from '../decision.ts';
import { configuredSpeeds } from '../health-view.ts';

type Asked = Parameters<typeof candidatesFor>[0];

/** The choice for a call of a key without rules, about endpoints of which nothing is known but their configuration. */
export function chosen(
  config: RouterConfig,
  request: Partial<ChatRequest> = {},
  asked: Partial<Asked> = {},
  circumstances: Partial<Circumstances> = {},
): Choice {
  return candidatesFor(
    { request: { messages: [{ role: 'user', content: 'hi' }], ...request }, maxTokens: null, ...asked },
    {
      catalogue: circumstances.catalogue ?? catalogueOf(config, configuredProviders(config)),
      rules: accountRulesOf({}).of(''),
      health: configuredSpeeds,
      stickyTo: null,
      seed: 'gen-1',
      ...circumstances,
    },
  );
}

/** @throws `router.no_provider` when there are none */
export function chosenCandidates(...args: Parameters<typeof chosen>): Candidate[] {
  const { candidates, decision } = chosen(...args);
  if (candidates.length === 0) throw noProvider(decision);
  return candidates;
}
