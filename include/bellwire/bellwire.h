/* Everything: one header per noun. */
#ifndef BW_BELLWIRE_H
#define BW_BELLWIRE_H

#include <bellwire/collective.h>
#include <bellwire/ctx.h>
#include <bellwire/device.h>
#include <bellwire/dtype.h>
#include <bellwire/err.h>
#include <bellwire/graph.h>
#include <bellwire/mock.h>
#include <bellwire/mock_device.h>
#include <bellwire/model.h>
#include <bellwire/picture.h>
#include <bellwire/profile.h>
#include <bellwire/program.h>
#include <bellwire/region.h>
#include <bellwire/sharded.h>
#include <bellwire/sys.h>
#include <bellwire/tensor.h>
#include <bellwire/text.h>
#include <bellwire/topology.h>
#include <bellwire/weights.h>

#endif
