/** Fields of a request that what a call costs depends on, beside its size. */
export const PRICED_FIELDS = ['service_tier', 'web_search_options'] as const;
export type PricedField = (typeof PRICED_FIELDS)[number];
