import type { AccountRules } from '#shared/config/account-rules.ts';
import type { DataPolicy } from '#shared/config/data-policy.ts';
import type { EndpointConfig } from '#shared/config/router-config.ts';
import { slugsOf } from '#shared/config/slugs.ts';

/** Whether requests under the rules may reach the endpoint, as the router worker decides for each of them. */
export function permits({ allowed, ignored, deniesCollection, requiresZdr }: AccountRules, endpoint: EndpointConfig, policy: DataPolicy): boolean {
  const slugs = slugsOf(endpoint.tag ?? endpoint.provider);
  const isNamedIn = (list: readonly string[]) => slugs.some((slug) => list.includes(slug));
  return allowed.every(isNamedIn) && !isNamedIn(ignored) && !(deniesCollection && (policy.trains || policy.retains)) && !(requiresZdr && policy.retains);
}
