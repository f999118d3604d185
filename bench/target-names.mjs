/** In the order in which a round goes through them. @type {readonly string[]} */
export const targetNames = ['direct', 'raw-proxy', 'bare-hop', 'portkey', 'switchyard', 'former-settings', 'co-located', 'billed', 'dbos', 'standalone'];
