/** Of the public APIs of this release, as their published descriptions name them. */
export const API_VERSIONS = { agent: '0.9.0', router: '1' } as const;
