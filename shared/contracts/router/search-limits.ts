import { z } from 'zod';

/** Of one list: as many as vendors take. */
const MAX_DOMAINS = 100;
const MAX_NAME_CHARS = 100;

/** With a path, too; without a scheme. */
const domain = z
  .string()
  .max(253)
  .regex(/^[a-z0-9][a-z0-9.-]*(?:\/\S*)?$/i, 'must be a domain, without "https://"');
export const searchDomains = z.array(domain).max(MAX_DOMAINS);

const place = z.string().min(1).max(MAX_NAME_CHARS).nullish();
export const userLocation = z.looseObject({ type: z.literal('approximate').optional(), city: place, region: place, country: place, timezone: place });

/** Fields of the plugin `web` that not all engines have. */
export const searchLimits = {
  /** Results are from these alone. */
  include_domains: searchDomains.optional(),
  /** Results are from none of these. */
  exclude_domains: searchDomains.optional(),
  /** For which results are to matter. */
  user_location: userLocation.optional(),
};

/** As engines take it. */
export interface UserLocation {
  type: 'approximate';
  city?: string;
  region?: string;
  country?: string;
  timezone?: string;
}

/** What limits a search; absent: nothing does. */
export interface SearchLimits {
  include_domains?: readonly string[];
  exclude_domains?: readonly string[];
  user_location?: UserLocation;
}
export type SearchLimit = keyof SearchLimits;

/** The limits of a plugin. Empty ones limit nothing. */
export function limitsOf(plugin: { [Name in SearchLimit]?: z.infer<(typeof searchLimits)[Name]> }): SearchLimits {
  const { include_domains: included = [], exclude_domains: excluded = [], user_location: location = {} } = plugin;
  const { city, region, country, timezone } = location;
  const known = Object.entries({ city, region, country, timezone }).filter(([, name]) => typeof name === 'string');
  return {
    ...(included.length > 0 && { include_domains: included }),
    ...(excluded.length > 0 && { exclude_domains: excluded }),
    ...(known.length > 0 && { user_location: { type: 'approximate', ...Object.fromEntries(known) } }),
  };
}

/** The first limit that is not among those that an engine takes; null: it takes all. */
export function limitBeyond(limits: SearchLimits, taken: readonly SearchLimit[]): SearchLimit | null {
  return (Object.keys(limits) as SearchLimit[]).find((name) => !taken.includes(name)) ?? null;
}
