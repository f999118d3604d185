/** What the console reads of a key. Amounts are US dollars. */
export interface RouterKey {
  hash: string;
  name: string;
  label: string;
  disabled: boolean;
  limit: number | null;
  limit_remaining: number | null;
  limit_reset: string | null;
  usage: number;
  usage_daily: number;
  requests_per_minute: number | null;
  is_management_key: boolean;
  expires_at: string | null;
  exposed_at: string | null;
  exposed_where: string | null;
}
