import type { RouterApi } from './router-api.ts';

/** What every section of the router's console needs. */
export interface WithApi {
  api: RouterApi;
}
