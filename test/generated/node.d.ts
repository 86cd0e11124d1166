// What programs here take of node, so that its types needn't be installed.
declare const process: { env: Record<string, string | undefined>; argv: string[]; exit(code: number): never }
