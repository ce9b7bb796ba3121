// esbuild bundles styles that are imported.
declare module "*.css";
