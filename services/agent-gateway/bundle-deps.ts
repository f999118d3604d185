import { agentApiKey, type Bundle } from '#shared/config/load-bundle.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { checkOutboundUrl } from '#shared/http/outbound-guard.ts';
import { modelKeyOf } from '#shared/keys/model-key.ts';
import type { parseConfig } from './config.ts';
import type { AgentGatewayDeps } from './deps.ts';

type Settings = Pick<ReturnType<typeof parseConfig>, 'outboundAllowHosts' | 'maxTokens' | 'providerOrder'>;

/** What a gateway needs of the agent's configuration. @throws `config.invalid` without the variable of a key */
export function bundleDeps(
  bundle: Bundle,
  { outboundAllowHosts, maxTokens, providerOrder }: Settings,
  environment: Environment,
): Pick<AgentGatewayDeps, 'agent' | 'bundle' | 'modelCalls' | 'checkCallbackUrl'> {
  const rules = { allowHosts: outboundAllowHosts };
  return {
    agent: { id: bundle.body.manifest.id, apiKey: agentApiKey(bundle, environment), bundleHash: bundle.hash },
    bundle,
    modelCalls: { modelKey: modelKeyOf(bundle, environment), maxTokens, providerOrder },
    checkCallbackUrl: (url, hostAllowlist) => void checkOutboundUrl(url, rules, hostAllowlist),
  };
}
